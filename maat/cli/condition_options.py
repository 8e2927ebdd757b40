"""The options for a run's conditions, read into the library's Conditions.

Knows no command.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.availability_options import Mtbf, Repair, Reserve, read_failures, read_reservations
from maat.cli.numbers import number_option, whole_option
from maat.cli.stay_options import LeastStay, MostMoves, bounds_of
from maat.cli.variability_options import (
    DrawRule,
    Penalties,
    VariabilityFolder,
    read_measured,
    read_penalties,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.stability import Stability
from maat.simulation.conditions import Conditions, check_interference, with_draw
from maat.simulation.fidelity import FIDELITIES, fidelity
from maat.simulation.interference import interference
from maat.simulation.tuned_jobs import MOST_GPUS, TunedJobs
from maat.vocabulary import MAX_GPUS, ProfilingMode, TuningRule

FidelityName = Annotated[
    str, typer.Option("--fidelity", help=f"Preset of modelling switches: {', '.join(FIDELITIES)}.")
]
Profiling = Annotated[
    ProfilingMode | None,
    typer.Option(help="What is known of a job before it runs; default: the fidelity's."),
]
RigidShare = Annotated[
    float,
    number_option(
        "--rigid-share", help="Share of jobs that keep the trace's GPU count and batch size, 0-1."
    ),
]
StrongShare = Annotated[
    float,
    number_option(
        "--strong-scaling-share", help="Share of jobs that keep the trace's batch size, 0-1."
    ),
]
Shared = Annotated[
    str | None,
    typer.Option(
        "--interference",
        help="Slowdown of jobs on one GPU: a table (CSV, JSON), synthetic, or a number.",
    ),
]
TunedRule = Annotated[
    TuningRule | None,
    typer.Option(
        "--tuned",
        help="Give jobs well-chosen, fixed GPU counts and batch sizes: "
        "50-80 % of the ideal speed-up.",
    ),
]
TunedGpus = Annotated[
    int | None,
    whole_option(
        "--tuned-gpus",
        least=1,
        most=MAX_GPUS,
        help=f"Maximum number of GPUs that a tuned job asks for; default: {MOST_GPUS}.",
    ),
]


@dataclass(frozen=True)
class ConditionOptions:
    """Each condition as it is written on the command line, apart from the rounds' interval."""

    fidelity_name: FidelityName = "paper"
    profiling: Profiling = None
    rigid_share: RigidShare = 0.0
    strong_scaling_share: StrongShare = 0.0
    mtbf_hours: Mtbf = None
    repair_minutes: Repair = None
    reserve: Reserve = None
    interference_name: Shared = None
    variability: VariabilityFolder = None
    variability_draw: DrawRule = None
    locality_penalty: Penalties = None
    tuned_rule: TunedRule = None
    tuned_gpus: TunedGpus = None
    least_stay: LeastStay = None
    most_moves_per_hour: MostMoves = None

    def read(
        self, cluster: Cluster, models: Collection[str], *, round_seconds: float | None
    ) -> Conditions:
        """Read the conditions.

        Raises InputError for an invalid option, or one without effect because another is missing.
        """
        found = Conditions(
            fidelity=with_draw(
                fidelity(self.fidelity_name, profiling=self.profiling),
                self.variability_draw,
                measured=self.variability is not None,
            ),
            round_seconds=round_seconds,
            rigid_share=self.rigid_share,
            strong_scaling_share=self.strong_scaling_share,
            failures=read_failures(self.mtbf_hours, self.repair_minutes),
            reservations=read_reservations(self.reserve or []),
            interference=None
            if self.interference_name is None
            else interference(self.interference_name),
            variability=read_measured(self.variability, cluster),
            locality_penalties=read_penalties(self.locality_penalty or [], models),
            tuned=_tuned(self.tuned_rule, self.tuned_gpus),
            stability=Stability(**bounds_of(self.least_stay, self.most_moves_per_hour)),
        )
        check_interference(found.interference, jobs_per_gpu=cluster.jobs_per_gpu)
        return found

    def inputs(self) -> list[Path]:
        """Return the files that are read."""
        table = None if self.interference_name is None else Path(self.interference_name)
        return [path for path in (self.variability, table) if path is not None and path.exists()]


def _tuned(rule: TuningRule | None, most_gpus: int | None) -> TunedJobs | None:
    """Return how jobs are tuned, None if not.

    Raises InputError for a limit without tuning.
    """
    if rule is not None:
        return TunedJobs(rule) if most_gpus is None else TunedJobs(rule, most_gpus)
    if most_gpus is not None:
        raise InputError(
            "limits tuned jobs, and there are none",
            field="tuned_gpus",
            value=most_gpus,
            remedy="Add --tuned best-batch, or leave it out.",
        )
    return None
