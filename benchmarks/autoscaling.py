"""`python -m benchmarks.autoscaling`: ImageNet on rented nodes.

Measures no speed.

Runs every reading of what Pollux section 5.4.1 leaves open. Writes the tables of docs/pollux.md
between their marks.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path

from benchmarks.page import markdown, write_between
from maat.laboratory.rental_bound import fastest_epochs, least_seconds
from maat.laboratory.rented import Training, train
from maat.scheduling.arrays import FloatArray
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
from maat.simulation.world_models import Model, measured_models
from maat.vocabulary import ProfilingMode

OUTPUT = Path(__file__).parents[1] / "docs" / "pollux.md"
BEGIN, END = "<!-- readings of auto-scaling -->", "<!-- end of readings -->"
BOUND_BEGIN, BOUND_END = "<!-- bound of auto-scaling -->", "<!-- end of bound -->"
UPPER, LOWER = 2 / 3, 1 / 2
PUBLISHED = (-0.25, 0.06)  # Pollux section 5.4.1: cost, completion time
NEAR = 0.05  # "within a few points" of both
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
    `largest_batch`: of the training, if it is not the largest measured one, 12,800.
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a reading: node-hours and hours by goodput and by throughput."""

    ours: tuple[float, float]
    theirs: tuple[float, float]

    @property
    def difference(self) -> tuple[float, float]:
        """Return the relative difference in cost and time, goodput over throughput."""
        return self.ours[0] / self.theirs[0] - 1, self.ours[1] / self.theirs[1] - 1

    @property
    def is_near(self) -> bool:
        return all(
            abs(found - published) <= NEAR
            for found, published in zip(self.difference, PUBLISHED, strict=True)
        )


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


SINGLE: Mapping[str, Reading] = {
    "as literal as can be": Reading(),
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
    "the published simulator's rule": Reading(published_rule=True),
}


def grid() -> list[Reading]:
    """Return all combinations of what changes the figures most."""
    targets = (LOWER, (UPPER + LOWER) / 2)
    return [
        Reading(nodes, target, ideal, batch, known=known)
        for nodes, target, ideal, batch, known in product(NODES, targets, Ideal, FastBatch, KNOWN)
    ]


@cache
def _imagenet(profiles: Path) -> Model:
    return measured_models(profiles, gpu_types=("t4",))["imagenet"]


def play(reading: Reading, profiles: Path, *, by_goodput: bool) -> tuple[float, float]:
    """Return node-hours and hours of one training."""
    training = training_of(reading, profiles)
    run = train(training, _ours(reading) if by_goodput else _theirs(reading))
    return run.node_seconds / 3600, run.seconds / 3600


def _ours(reading: Reading) -> Autoscaler:
    if reading.published_rule:
        return PUBLISHED_RULE
    return GoodputAutoscaler(UPPER, reading.target, reading.ideal)


def _theirs(reading: Reading) -> Autoscaler:
    plain = ThroughputAutoscaler(UPPER, LOWER, fast_batch=reading.fast_batch)
    return OneByOne(plain) if reading.one_by_one else plain


def training_of(reading: Reading, profiles: Path) -> Training:
    """Return ImageNet on the nodes of a reading."""
    rules = replace(fidelity("pollux-artifact"), flat_restart_seconds=reading.restart_seconds)
    cluster = Cluster.parse(f"t4={reading.nodes}x4")
    model = _imagenet(profiles)
    if reading.largest_batch is not None:
        truth = copy.copy(model.truth)
        truth.max_batch_size = reading.largest_batch  # type: ignore[misc]
        model = replace(model, truth=truth)
    return Training(model, cluster, rules, reading.round_seconds, reading.known)


def bound_table(profiles: Path) -> str:
    """Write what any schedule of nodes needs at least, beside what the rules take, on 16 nodes."""
    training = training_of(Reading(), profiles)
    epochs = fastest_epochs(training)
    literal, published = _ours(Reading()), _ours(Reading(published_rule=True))
    runs = {
        "by throughput": train(training, _theirs(Reading())),
        "by goodput, as in the text": train(training, literal),
        "by goodput, as in the published simulator": train(training, published),
    }
    baseline = runs["by throughput"]
    rows = [
        _bound_row(words, run.node_seconds, run.seconds, epochs, baseline.seconds)
        for words, run in runs.items()
    ]
    cost, time = PUBLISHED
    wanted = (1 + cost) * baseline.node_seconds, (1 + time) * baseline.seconds
    rows.append(_bound_row("**the paper's figures**", *wanted, epochs, baseline.seconds))
    head = ("", "node-hours", "hours", "least hours of any schedule at that cost", "that is")
    return markdown(head, rows)


def _bound_row(
    words: str, node_seconds: float, seconds: float, epochs: FloatArray, baseline: float
) -> tuple[str, ...]:
    least = least_seconds(epochs, node_seconds=node_seconds)
    hours = (node_seconds / 3600, seconds / 3600, least / 3600)
    cells = (form.format(x) for form, x in zip(("{:.1f}", "{:.2f}", "{:.2f}"), hours, strict=True))
    return (words, *cells, f"{least / baseline - 1:+.1%}")


def play_all(
    readings: Iterable[Reading], profiles: Path, *, processes: int
) -> Mapping[Reading, Outcome]:
    """Run every reading; shared runs are made once."""
    readings = list(dict.fromkeys(readings))
    runs = list(
        dict.fromkeys(
            (one, ours)
            for r in readings
            for one, ours in ((r.by_goodput(), True), (r.by_throughput(), False))
        )
    )
    found = {}
    with ProcessPoolExecutor(processes) as pool:
        for number, (run, figures) in enumerate(
            zip(runs, pool.map(_play, runs, [profiles] * len(runs)), strict=True), start=1
        ):
            print(
                f"{number}/{len(runs)} {run[0]}: {figures[0]:.1f} node-hours, {figures[1]:.2f} h",
                file=sys.stderr,
            )
            found[run] = figures
    return {
        r: Outcome(found[r.by_goodput(), True], found[r.by_throughput(), False]) for r in readings
    }


def _play(run: tuple[Reading, bool], profiles: Path) -> tuple[float, float]:
    return play(run[0], profiles, by_goodput=run[1])


# ---- tables


def tables(found: Mapping[Reading, Outcome]) -> str:
    return "\n\n".join(
        (
            "One thing read otherwise at a time:",
            _singles(found),
            _summary(found),
            _by_nodes(found),
            "Those near both:",
            _near(found),
        )
    )


def _singles(found: Mapping[Reading, Outcome]) -> str:
    heading = (
        "reading",
        "node-hours by goodput",
        "by throughput",
        "cost",
        "hours by goodput",
        "by throughput",
        "completion time",
    )
    rows = []
    for words, reading in SINGLE.items():
        outcome = found[reading]
        pairs = zip(
            outcome.ours, outcome.theirs, outcome.difference, ("{:.1f}", "{:.2f}"), strict=True
        )
        rows.append(
            (
                words,
                *(
                    cell
                    for a, b, d, form in pairs
                    for cell in (form.format(a), form.format(b), f"{d:+.0%}")
                ),
            )
        )
    cost, time = PUBLISHED
    return markdown(
        heading, [*rows, ("**paper**", "", "", f"**{cost:+.0%}**", "", "", f"**{time:+.0%}**")]
    )


def _summary(found: Mapping[Reading, Outcome]) -> str:
    every = grid()
    near = sum(found[reading].is_near for reading in every)
    return (
        f"All {len(every)} combinations of nodes, target (L, or the middle of U and L), ideal "
        "(one GPU, one node), what is known (all step times, "
        "one GPU's, nothing) and the batch by throughput (what the GPUs hold; the largest, "
        f"accumulated where they hold less): {near} are within "
        f"{NEAR:.0%} of both of the paper's figures."
    )


def _by_nodes(found: Mapping[Reading, Outcome]) -> str:
    heading = ("most nodes", "batch by throughput", "cost", "completion time", "near both")
    rows = []
    for nodes, batch in product(NODES, FastBatch):
        outcomes = [found[r] for r in grid() if (r.nodes, r.fast_batch) == (nodes, batch)]
        spans = (_span([outcome.difference[axis] for outcome in outcomes]) for axis in (0, 1))
        rows.append(
            (
                nodes,
                _batch_words(batch),
                *spans,
                f"{sum(outcome.is_near for outcome in outcomes)} of {len(outcomes)}",
            )
        )
    return markdown(heading, rows)


def _near(found: Mapping[Reading, Outcome]) -> str:
    heading = (
        "most nodes",
        "batch by throughput",
        "ideal",
        "target",
        "known",
        "cost",
        "completion time",
    )
    rows = [
        (
            reading.nodes,
            _batch_words(reading.fast_batch),
            reading.ideal.value.replace("-", " ").replace("gpu", "GPU"),
            "L" if reading.target == LOWER else "middle",
            KNOWN[reading.known],
            *(f"{difference:+.0%}" for difference in found[reading].difference),
        )
        for reading in grid()
        if found[reading].is_near
    ]
    return markdown(heading, rows)


def _batch_words(batch: FastBatch) -> str:
    return "what GPUs hold" if batch is FastBatch.HELD else "the largest"


def _span(values: Sequence[float]) -> str:
    return f"{min(values):+.0%} to {max(values):+.0%}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.autoscaling", description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="trainings at a time")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="the Markdown file whose tables are written"
    )
    parser.add_argument("--bound", action="store_true", help="only the table of the bound")
    options = parser.parse_args(arguments)
    data = os.environ.get("MAAT_DATA")
    if not data:
        parser.error("MAAT_DATA is not set: give the folder that holds sia-artifact/profiles")
    profiles = Path(data, "sia-artifact", "profiles")
    write_between(options.output, bound_table(profiles), begin=BOUND_BEGIN, end=BOUND_END)
    if options.bound:
        return 0
    found = play_all([*SINGLE.values(), *grid()], profiles, processes=options.processes)
    write_between(options.output, tables(found), begin=BEGIN, end=END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
