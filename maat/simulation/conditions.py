"""The conditions of a run, apart from its jobs, cluster and policy."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from maat.models.locality_table import LocalityTable
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, LocalityError, ParameterError
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from maat.scheduling.stability import NO_BOUNDS, Stability
from maat.simulation.failures import Failures
from maat.simulation.fidelity import FIDELITIES, Fidelity
from maat.simulation.interference import Interference
from maat.simulation.job_window import JobWindow
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.variability import Variability
from maat.vocabulary import ScoreDraw


@dataclass(frozen=True)
class Conditions:
    """The conditions, equal for all runs of a comparison.

    `round_seconds`: between rounds; None: the fidelity's, else the policy's default. `rigid_share`,
    `strong_scaling_share`: shares of the jobs, drawn by the seed, that keep the trace's batch size
    (rigid jobs also its GPU count). `quotas`: what tenants may hold, as a live cluster has them.
    `stability`: how long jobs stay where they are. `interference`: slowdowns of jobs on one GPU;
    required if the cluster allows several jobs per GPU. `variability`: measurements from which the
    GPU scores of the cluster are drawn; None: its own, if any. `locality_penalties`: by model,
    replacing the model's own. `weighs_steps`: placers know what nodes apart cost a model by its
    step times; else they take those to be alike. `rack_penalty`: further slowdown of a job across
    racks, of every model. `network_contention`: share of its speed that a distributed job loses
    while it shares a node with another (Pollux, section 5.3.2). `tuned`: jobs keep GPU counts and
    batch sizes as a well-informed owner would choose them, drawn by the seed, instead of the
    trace's.
    `measured_jobs`: those that the figures are of; None: all.
    """

    fidelity: Fidelity = field(default_factory=lambda: FIDELITIES["paper"])
    round_seconds: float | None = None
    rigid_share: float = 0.0
    strong_scaling_share: float = 0.0
    failures: Failures = ()
    reservations: tuple[Reservation, ...] = ()
    quotas: tuple[TenantQuota, ...] = ()
    stability: Stability = NO_BOUNDS
    interference: Interference | None = None
    variability: Variability | None = None
    locality_penalties: Mapping[str, float] = field(default_factory=dict)
    weighs_steps: bool = False
    rack_penalty: float = 1.0
    network_contention: float = 0.0
    tuned: TunedJobs | None = None
    measured_jobs: JobWindow | None = None


def check_interference(given: Interference | None, *, jobs_per_gpu: int) -> None:
    """Raise InputError if interference is given although no two jobs can share a GPU."""
    if given is not None and jobs_per_gpu == 1:
        raise InputError(
            "says what jobs on one GPU lose, but a GPU holds one job",
            field="interference",
            value=given.name,
            remedy="Let more jobs share a GPU (jobs_per_gpu 2), or leave it out.",
        )


def check_racks(rack_penalty: float, cluster: Cluster) -> None:
    """Raise InputError if racks are to cost something and the cluster has none."""
    if rack_penalty > 1 and cluster.rack_count == 1:
        raise InputError(
            "slows jobs across racks, but all nodes stand in one",
            field="rack_penalty",
            value=rack_penalty,
            remedy="Give the cluster racks, such as t4=16x4/4, or leave it out.",
        )


def with_draw(preset: Fidelity, draw: ScoreDraw | None, *, measured: bool) -> Fidelity:
    """Return the fidelity with this draw of GPU scores, by the simulation's seed.

    `draw` None: the fidelity unchanged. `measured`: whether there are measurements to draw from.
    Raises ParameterError if there are none.
    """
    if draw is None:
        return preset
    if not measured:
        raise ParameterError(
            "draws from measured GPUs, of which there are none",
            field="variability_draw",
            value=draw.value,
            remedy="Say what was measured (variability), or leave it out.",
        )
    return replace(preset, variability=replace(preset.variability, draw=draw, draw_seed=None))


def penalties_of_table(
    table: LocalityTable, models: Collection[str], gpu_types: Collection[str]
) -> dict[str, float]:
    """Return the slowdown across nodes of those of `models` that a table holds.

    Over its rows on these GPU types. Raises LocalityError if it holds none of them.
    """
    found = table.penalties(gpu_types)
    known = {model: factor for model, factor in found.items() if model in models}
    if not known:
        raise LocalityError(
            "has no row of a model that jobs may have",
            field="model",
            value=", ".join(found),
            remedy=f"Measure one of: {', '.join(sorted(models))}.",
        )
    return known


def penalties_of(
    given: float | Mapping[str, float], models: Collection[str], *, written: str | None = None
) -> dict[str, float]:
    """Return the slowdown across nodes by model.

    `given`: one factor for all `models`, or a factor for each named model. `written`: the user's
    text, if it was not a number. Raises ParameterError for a factor below 1 and for an unknown
    model.
    """
    named = given if isinstance(given, Mapping) else dict.fromkeys(sorted(models), given)
    for model, factor in named.items():
        if model not in models:
            raise ParameterError(
                "is no known model",
                field="locality_penalty",
                value=model,
                remedy=f"Use one of: {', '.join(sorted(models))}.",
            )
        if not 1 <= factor < math.inf:
            shown = f"{model}={factor:g}" if isinstance(given, Mapping) else factor
            raise ParameterError(
                "is no factor of at least 1",
                field="locality_penalty",
                value=shown if written is None else written,
                remedy="Write for example 1.7, or resnet50=1.2.",
            )
    return dict(named)
