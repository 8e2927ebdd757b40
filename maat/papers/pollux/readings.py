"""What Pollux section 5.4.1 leaves open of auto-scaling, and one training by each reading."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

from maat.laboratory.rental_bound import fastest_epochs, least_seconds
from maat.laboratory.rented import Training, train
from maat.scheduling.autoscaling import (
    PUBLISHED_RULE,
    Autoscaler,
    FastBatch,
    GoodputAutoscaler,
    Ideal,
    ScalingInput,
    ThroughputAutoscaler,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job
from maat.simulation.fidelity import fidelity
from maat.simulation.world_models import Model, models_in_texts, named_model
from maat.vocabulary import ProfilingMode

UPPER, LOWER = 2 / 3, 1 / 2  # U and L
NODES = (4, 8, 10, 12, 16)
KNOWN = {
    ProfilingMode.ORACLE: "all step times",
    ProfilingMode.BOOTSTRAP: "one GPU's",
    ProfilingMode.NO_PROFILE: "nothing",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What the paper leaves open; the defaults follow its text literally.

    `nodes`: the maximum to rent; the paper's simulated cluster has 16. `target`: the share of the
    ideal (of one GPU or one node) to which nodes are added by goodput. `one_by_one`: by throughput,
    one node is added at every decision instead. `known`: the step times known beforehand.
    `published_rule`: by goodput, the rule of the published simulator.
    `largest_batch`: of the training, if it is not the largest measured one.
    """

    nodes: int = 16
    target: float = LOWER
    ideal: Ideal = Ideal.ONE_GPU
    fast_batch: FastBatch = FastBatch.HELD
    one_by_one: bool = False
    known: ProfilingMode = ProfilingMode.ORACLE
    round_seconds: float = 60.0
    restart_seconds: float = 30.0
    largest_batch: int | None = None
    published_rule: bool = False

    def by_goodput(self) -> Reading:
        """Return the reading without what concerns only throughput.

        Readings with equal runs by goodput share them.
        """
        return replace(self, fast_batch=FastBatch.HELD, one_by_one=False)

    def by_throughput(self) -> Reading:
        """Return the reading without what concerns only goodput."""
        return replace(self, target=LOWER, ideal=Ideal.ONE_GPU, published_rule=False)


LITERAL, PUBLISHED_CODE = "as literal as can be", "the published simulator's rule"
SINGLE: Mapping[str, Reading] = {
    LITERAL: Reading(),
    PUBLISHED_CODE: Reading(published_rule=True),
    "at most 12 nodes": Reading(nodes=12),
    "at most 8 nodes": Reading(nodes=8),
    "at most 4 nodes": Reading(nodes=4),
    "ideal: one node": Reading(ideal=Ideal.ONE_NODE),
    "to the middle of U and L": Reading(target=(UPPER + LOWER) / 2),
    "to U": Reading(target=UPPER),
    "known: one GPU's step times": Reading(known=ProfilingMode.BOOTSTRAP),
    "known: nothing, prior-driven exploration": Reading(known=ProfilingMode.NO_PROFILE),
    "throughput one node at a time": Reading(one_by_one=True),
    "decisions every 10 min": Reading(round_seconds=600.0),
    "both": Reading(one_by_one=True, round_seconds=600.0),
    "free re-scaling": Reading(restart_seconds=0.0),
    "re-scaling at Sia's 250 s": Reading(restart_seconds=250.0),
    "batches up to 6,400": Reading(largest_batch=6400),
}


def grid() -> list[Reading]:
    """Return all combinations of what changes the figures most."""
    targets = (LOWER, (UPPER + LOWER) / 2)
    return [
        Reading(nodes, target, ideal, batch, known=known)
        for nodes, target, ideal, batch, known in product(NODES, targets, Ideal, FastBatch, KNOWN)
    ]


def trained(
    profile: Mapping[str, str] | None,
    model: str,
    reading: Mapping[str, Any],
    *,
    by_goodput: bool,
) -> Mapping[str, Any]:
    """Train a model once by a reading (its fields).

    `profile`: the files of its measurements; None: the catalog's model. Returns node-hours, hours,
    and how nodes and efficiency change, as [hour, value].
    """
    read = _reading(reading)
    run = train(_training(profile, model, read), _ours(read) if by_goodput else _theirs(read))
    return {
        "node_hours": run.node_seconds / 3600,
        "hours": run.seconds / 3600,
        "efficiency": run.efficiency,
        "nodes": [[time / 3600, count] for time, count in run.rented],
        "efficiencies": [[time / 3600, value] for time, value in run.efficiencies],
    }


def least_hours(
    profile: Mapping[str, str] | None, model: str, node_hours: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the least hours of any schedule of 16 nodes at each cost, restarts free."""
    epochs = fastest_epochs(_training(profile, model, Reading()))
    return {
        name: least_seconds(epochs, node_seconds=3600 * cost) / 3600
        for name, cost in node_hours.items()
    }


def fields_of(reading: Reading) -> Mapping[str, Any]:
    """Return a reading as plain data."""
    return {
        name: value.value if isinstance(value, Ideal | FastBatch | ProfilingMode) else value
        for name, value in asdict(reading).items()
    }


def _reading(fields: Mapping[str, Any]) -> Reading:
    return Reading(
        **{
            **fields,
            "ideal": Ideal(fields["ideal"]),
            "fast_batch": FastBatch(fields["fast_batch"]),
            "known": ProfilingMode(fields["known"]),
        }
    )


def _training(profile: Mapping[str, str] | None, name: str, reading: Reading) -> Training:
    rules = replace(fidelity("pollux-artifact"), flat_restart_seconds=reading.restart_seconds)
    model = named_model(name, None if profile is None else _models(tuple(sorted(profile.items()))))
    if reading.largest_batch is not None:
        truth = copy.copy(model.truth)
        truth.max_batch_size = reading.largest_batch  # type: ignore[misc]
        model = replace(model, truth=truth)
    cluster = Cluster.parse(f"t4={reading.nodes}x4")
    return Training(model, cluster, rules, reading.round_seconds, reading.known)


@lru_cache(maxsize=4)
def _models(profile: tuple[tuple[str, str], ...]) -> Mapping[str, Model]:
    return models_in_texts(dict(profile), gpu_types=("t4",))


def _ours(reading: Reading) -> Autoscaler:
    if reading.published_rule:
        return PUBLISHED_RULE
    return GoodputAutoscaler(UPPER, reading.target, reading.ideal)


def _theirs(reading: Reading) -> Autoscaler:
    plain = ThroughputAutoscaler(UPPER, LOWER, fast_batch=reading.fast_batch)
    return OneByOne(plain) if reading.one_by_one else plain


@dataclass(frozen=True)
class OneByOne:
    """Another autoscaler's choice, reached one node at a time."""

    inner: Autoscaler
    name: str = field(default="one by one")

    def share(self, scaling: ScalingInput) -> float:
        return self.inner.share(scaling)

    def node_count(self, scaling: ScalingInput) -> int:
        return min(self.inner.node_count(scaling), scaling.node_count + 1)

    def batch(self, scaling: ScalingInput, job: Job, *, gpu_count: int) -> BatchPlan | None:
        return self.inner.batch(scaling, job, gpu_count=gpu_count)
