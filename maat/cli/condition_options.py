"""The options for a run's conditions, read into the library's Conditions.

Knows no command.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.availability_options import Mtbf, Repair, Reservations
from maat.cli.numbers import number_option
from maat.cli.stay_options import LeastStay, MostMoves
from maat.cli.tuned_options import TunedGpus, TunedRules, Tuning, read_tuning
from maat.cli.variability_options import DrawRule, Penalties, VariabilityFolder, read_penalties
from maat.library.conditions import read_conditions
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import FIDELITIES
from maat.vocabulary import MOST_CONTENTION, MOST_RACK_PENALTY, ProfilingMode

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
RackPenalty = Annotated[
    float,
    number_option(
        "--rack-penalty",
        least=1,
        most=MOST_RACK_PENALTY,
        help="Further slowdown across racks; the cluster has some, such as t4=16x4/4.",
    ),
]
Contention = Annotated[
    float,
    number_option(
        "--network-contention",
        least=0,
        most=MOST_CONTENTION,
        help="Share of its speed that a job across nodes loses to another such job on a node.",
    ),
]


MeasuredJobs = Annotated[
    str | None,
    typer.Option(
        "--measured-jobs",
        help="The jobs that figures are of: FIRST-LAST, such as 2000-3000, counted from 0 in order "
        "of submission; default: all.",
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
    repair_seconds: Repair = None
    reservations: Reservations = None
    interference_name: Shared = None
    variability: VariabilityFolder = None
    variability_draw: DrawRule = None
    locality_penalty: Penalties = None
    rack_penalty: RackPenalty = 1.0
    network_contention: Contention = 0.0
    tuned_rules: TunedRules = None
    tuned_gpus: TunedGpus = None
    measured_jobs: MeasuredJobs = None
    least_stay_seconds: LeastStay = None
    most_moves_per_hour: MostMoves = None

    def read(
        self, cluster: Cluster, models: Collection[str], *, round_seconds: float | None
    ) -> Conditions:
        """Read the conditions.

        Raises InputError for an invalid option, or one without effect because another is missing.
        """
        return read_conditions(
            cluster,
            models,
            round_seconds=round_seconds,
            fidelity=self.fidelity_name,
            profiling=self.profiling,
            rigid_share=self.rigid_share,
            strong_scaling_share=self.strong_scaling_share,
            failures_mtbf_hours=self.mtbf_hours,
            repair_seconds=self.repair_seconds,
            reservations=self.reservations or (),
            interference=self.interference_name,
            variability=self.variability,
            variability_draw=self.variability_draw,
            locality_penalty=read_penalties(self.locality_penalty or [], models),
            rack_penalty=self.rack_penalty,
            network_contention=self.network_contention,
            tuned=self.tuning.of_all,
            measured_jobs=self.measured_jobs,
            least_stay_seconds=self.least_stay_seconds,
            most_moves_per_hour=self.most_moves_per_hour,
        )

    @property
    def tuning(self) -> Tuning:
        """How jobs are tuned under which policies. Raises InputError."""
        return read_tuning(self.tuned_rules or [], self.tuned_gpus)

    def inputs(self) -> list[Path]:
        """Return the files that are read."""
        table = None if self.interference_name is None else Path(self.interference_name)
        return [path for path in (self.variability, table) if path is not None and path.exists()]
