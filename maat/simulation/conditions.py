"""What a run happens under besides its jobs, its cluster and its policy: the rules of the world. Plays nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.reservations import Reservation
from maat.simulation.failures import Failures
from maat.simulation.fidelity import FIDELITIES, Fidelity
from maat.simulation.interference import Interference
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.variability import Variability
from maat.vocabulary import ScoreDraw


@dataclass(frozen=True)
class Conditions:
    """The same for every run that is compared.

    `round_seconds`: between rounds; None: as the fidelity says, else the policy. `rigid_share`, `strong_scaling_share`: shares of the jobs, drawn
    by the seed, that keep the trace's batch size, and its GPU count too. `interference`: what jobs on one GPU lose; needed where the cluster lets
    several share one. `variability`: measurements from which the scores of the cluster's GPUs are drawn; None: the cluster's own scores, if any.
    `locality_penalties`: by model, instead of the model's own. `tuned`: jobs keep GPU counts and batch sizes that a well-informed owner chose,
    drawn by the seed, instead of the trace's.
    """

    fidelity: Fidelity = field(default_factory=lambda: FIDELITIES["paper"])
    round_seconds: float | None = None
    rigid_share: float = 0.0
    strong_scaling_share: float = 0.0
    failures: Failures = ()
    reservations: tuple[Reservation, ...] = ()
    interference: Interference | None = None
    variability: Variability | None = None
    locality_penalties: Mapping[str, float] = field(default_factory=dict)
    tuned: TunedJobs | None = None


def check_interference(given: Interference | None, *, jobs_per_gpu: int) -> None:
    """Raises InputError where it is said what jobs on one GPU lose, and no two can meet on one."""
    if given is not None and jobs_per_gpu == 1:
        raise InputError(
            "says what jobs on one GPU lose, but a GPU holds one job",
            field="interference",
            value=given.name,
            remedy="Let more jobs share a GPU (jobs_per_gpu 2), or leave it out.",
        )


def with_draw(preset: Fidelity, draw: ScoreDraw | None, *, measured: bool) -> Fidelity:
    """The fidelity drawing scores in that way, by the simulation's seed; itself where nothing is asked for.

    `measured`: whether there is something to draw from. Raises ParameterError where there is not.
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


def penalties_of(
    given: float | Mapping[str, float], models: Collection[str], *, written: str | None = None
) -> dict[str, float]:
    """The slowdown across nodes, by model: one factor for all `models`, or a factor for each that is named.

    `written`: how it was given, where that is not as a number. Raises ParameterError for a factor below 1, and for a model that is not known.
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
            told = f"{model}={factor:g}" if isinstance(given, Mapping) else factor
            raise ParameterError(
                "is no factor of at least 1",
                field="locality_penalty",
                value=told if written is None else written,
                remedy="Write for example 1.7, or resnet50=1.2.",
            )
    return dict(named)
