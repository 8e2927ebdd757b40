"""The conditions of a requested run from plain values, and the checks before it is accepted.

What a service needs of the simulation to accept a request; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from maat.laboratory.runnable_jobs import with_runnable_jobs
from maat.models.locality_table import LocalityTable
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from maat.scheduling.stability import NO_BOUNDS, Stability
from maat.simulation.adaptivity_shares import check_shares
from maat.simulation.conditions import (
    Conditions,
    check_interference,
    check_racks,
    penalties_of,
    penalties_of_table,
    with_draw,
)
from maat.simulation.failures import RandomFailures
from maat.simulation.fidelity import FIDELITIES, Fidelity, fidelity
from maat.simulation.interference import Interference, synthetic
from maat.simulation.iteration_models import shipped_models
from maat.simulation.job_window import JobWindow
from maat.simulation.notes import notes_on
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.usable_types import check_gpu_types, check_models
from maat.simulation.variability import Variability
from maat.simulation.world import World
from maat.simulation.world_models import Model, models_in_texts, named_model
from maat.vocabulary import MEASURED, SYNTHETIC, ProfilingMode, ScoreDraw, TuningRule

__all__ = [
    "FIDELITIES",
    "Conditions",
    "Fidelity",
    "Interference",
    "LocalityTable",
    "Model",
    "Scenario",
    "TunedJobs",
    "Variability",
    "check_gpu_types",
    "check_interference",
    "check_measured_jobs",
    "check_models",
    "check_racks",
    "check_scores",
    "check_shared_gpus",
    "check_shares",
    "fidelity_drawing",
    "interference_from",
    "models_in_texts",
    "named_model",
    "notes_on",
    "penalties_from",
    "requested_conditions",
    "shipped_models",
    "window_of",
    "with_runnable_jobs",
]


def requested_conditions(
    *,
    fidelity: str,
    profiling: ProfilingMode | None,
    variability_draw: ScoreDraw | None,
    round_seconds: float | None,
    rigid_share: float,
    strong_scaling_share: float,
    mtbf_hours: float | None,
    repair_seconds: float,
    reservations: tuple[Reservation, ...],
    interference: Interference | None,
    variability: Variability | None,
    locality_penalty: float | Mapping[str, float] | str | None,
    rack_penalty: float,
    network_contention: float,
    tuned: TuningRule | None,
    tuned_gpus: int,
    measured_jobs: str | None = None,
    quotas: tuple[TenantQuota, ...] = (),
    stability: Stability = NO_BOUNDS,
    models: Mapping[str, Model] | None = None,
    locality: LocalityTable | None = None,
    gpu_types: Collection[str] = (),
) -> Conditions:
    """Return the conditions. Raises InputError.

    `fidelity`: the name of a preset. `mtbf_hours` None: no node fails. `locality_penalty`: one
    factor for all models, a factor by model, `measured`, or the name of `locality`, a table, which
    holds them for `gpu_types`. `tuned_gpus`: the limit of tuned jobs.
    `measured_jobs`: FIRST-LAST, the jobs that figures are of; None: all. `models`: those that may
    be named; None: all that Maat ships.
    """
    return Conditions(
        fidelity=fidelity_drawing(
            fidelity, variability_draw, profiling=profiling, measured=variability is not None
        ),
        round_seconds=round_seconds,
        rigid_share=rigid_share,
        strong_scaling_share=strong_scaling_share,
        failures=() if mtbf_hours is None else RandomFailures(mtbf_hours, repair_seconds),
        reservations=reservations,
        quotas=quotas,
        stability=stability,
        interference=interference,
        variability=variability,
        locality_penalties=penalties_from(locality_penalty, models, locality, gpu_types),
        weighs_steps=locality_penalty == MEASURED,
        rack_penalty=rack_penalty,
        network_contention=network_contention,
        tuned=None if tuned is None else TunedJobs(tuned, tuned_gpus),
        measured_jobs=window_of(measured_jobs),
    )


def window_of(given: str | None) -> JobWindow | None:
    """Return the jobs that figures are of; None: all. Raises ParameterError."""
    return None if given is None else JobWindow.read(given)


def fidelity_drawing(
    name: str,
    draw: ScoreDraw | None,
    *,
    profiling: ProfilingMode | None = None,
    measured: bool,
) -> Fidelity:
    """Return a preset with this profiling and this draw of GPU scores; None: the preset's own.

    `measured`: whether there are measurements to draw from. Raises UnknownNameError or
    ParameterError.
    """
    return with_draw(fidelity(name, profiling=profiling), draw, measured=measured)


def interference_from(
    given: str | float | None, measured: Interference | None
) -> Interference | None:
    """Return the interference of a request.

    A text is never a path here: it names the shipped table or the `measured` one. A number is the
    slowdown of all pairs.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return synthetic() if given == SYNTHETIC else measured
    return Interference.constant(given)


def penalties_from(
    given: float | Mapping[str, float] | str | None,
    models: Mapping[str, Model] | None = None,
    measured: LocalityTable | None = None,
    gpu_types: Collection[str] = (),
) -> Mapping[str, float]:
    """Return the slowdown across nodes by model; empty: the models' own. Raises InputError.

    A text is never a path here: it is `measured`, by the models' step times, or names the table.
    `models`: those that may be named; None: all that Maat ships. `gpu_types`: of the cluster.
    """
    known = shipped_models() if models is None else models
    if given is None or given == MEASURED:
        return {}
    if isinstance(given, str):
        return {} if measured is None else penalties_of_table(measured, known, gpu_types)
    return penalties_of(given, known)


def check_shared_gpus(scenario: Scenario) -> None:
    """Raise InterferenceError if jobs share GPUs and no table covers them."""
    World.of(scenario).check_interference()


def check_measured_jobs(scenario: Scenario) -> None:
    """Raise ParameterError if the figures are to be of jobs that are not there."""
    window = scenario.conditions.measured_jobs
    if window is not None:
        window.check(len(scenario.workload))


def check_scores(scenario: Scenario) -> None:
    """Raise VariabilityError if the measurements lack a GPU type or enough GPUs of it."""
    World.of(scenario).check_scores()
