"""The options for workloads (traces or generated), models and cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.numbers import number_option, whole_option
from maat.laboratory.setup import GeneratedTrace, Trace, TraceSource
from maat.library.inputs import DEFAULT_CLUSTER, read_cluster, read_models, read_trace, read_traces
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.simulation.world_models import Model
from maat.vocabulary import MAX_HOURS, MAX_JOBS_PER_GPU
from maat.workloads.generators import FAMILIES, FAMILY_NAMES
from maat.workloads.reading import MAX_JOBS

TraceFile = Annotated[
    Path | None,
    typer.Argument(
        help="Workload file; its format is recognised by its header, or its cells.",
        show_default=False,
    ),
]
TraceFiles = Annotated[list[Path] | None, typer.Argument(help="Workload CSVs.", show_default=False)]
Generated = Annotated[
    str | None,
    typer.Option(
        "--generate",
        help=f"Generate a workload instead of reading one: {', '.join(FAMILY_NAMES)}.",
    ),
]
Families = Annotated[
    str | None,
    typer.Option(
        "--generate",
        help=f"Generate workloads, new ones with every seed: {', '.join(FAMILY_NAMES)}.",
    ),
]
JobCount = Annotated[
    int | None, whole_option("--jobs", least=1, most=MAX_JOBS, help="Jobs to generate.")
]
Hours = Annotated[
    float | None,
    number_option(
        "--hours",
        least=0.01,
        most=MAX_HOURS,
        help="Hours in which the generated jobs are submitted.",
    ),
]
XxlShare = Annotated[
    float,
    number_option(
        "--xxl-share",
        help="Share of generated jobs that fine-tune GPT, hybrid-parallel (Sia section 5.3), 0-1; "
        f"of {', '.join(FAMILIES)}.",
    ),
]


@dataclass(frozen=True)
class ClusterOptions:
    """The cluster that jobs run on, and their models."""

    profiles: Annotated[
        Path | None,
        typer.Option(
            help="Folder of measured profiles, or a JSON table of throughputs; "
            "without it, the catalog's fitted models."
        ),
    ] = None
    cluster: Annotated[str, typer.Option(help="GPU types and nodes: type=NODESxGPUS,...")] = (
        DEFAULT_CLUSTER
    )
    jobs_per_gpu: Annotated[
        int,
        whole_option(
            "--jobs-per-gpu",
            least=1,
            most=MAX_JOBS_PER_GPU,
            help="How many jobs may share a GPU; above 1, --interference gives their slowdown.",
        ),
    ] = 1

    def read(self) -> tuple[Mapping[str, Model], Cluster]:
        """Read models and cluster. Raises ClusterError, ProfileError."""
        cluster = read_cluster(self.cluster, self.jobs_per_gpu)
        return read_models(self.profiles, cluster), cluster

    def inputs(self) -> list[Path]:
        """Return the files that are read."""
        return [] if self.profiles is None else [self.profiles]


@dataclass(frozen=True)
class WorkloadOptions:
    """One workload, read or generated."""

    trace: TraceFile = None
    generated: Generated = None
    job_count: JobCount = None
    hours: Hours = None
    xxl_share: XxlShare = 0.0

    def read(self, models: Mapping[str, Model]) -> TraceSource:
        """Read the workload.

        Raises TraceError for an unreadable file, InputError if there is none or an option has no
        effect.
        """
        if (self.trace is None) == (self.generated is None):
            raise InputError(
                "is missing, or given twice",
                field="trace",
                remedy="Name a workload CSV, or use --generate philly.",
            )
        if self.trace is None:
            return GeneratedTrace(
                str(self.generated), self.job_count, self.hours, xxl_share=self.xxl_share
            )
        _refuse_generator_options(self.job_count, self.hours, self.xxl_share)
        return read_trace(self.trace, models)

    def inputs(self) -> list[Path]:
        """Return the files that are read."""
        return [] if self.trace is None else [self.trace]


@dataclass(frozen=True)
class WorkloadsOptions:
    """Several workloads."""

    traces: TraceFiles = None
    generated: Families = None
    job_count: JobCount = None
    hours: Hours = None
    xxl_share: XxlShare = 0.0

    def read(self, models: Mapping[str, Model]) -> tuple[Trace, ...]:
        """Read the workloads by the names that tables show. Raises as WorkloadOptions."""
        given = read_traces(self.traces or [], models)
        made = [
            Trace(
                name,
                GeneratedTrace(name, self.job_count, self.hours, xxl_share=self.xxl_share),
            )
            for name in _families(self.generated)
        ]
        if not given and not made:
            raise InputError(
                "is missing", field="trace", remedy="Name workload CSVs, or use --generate philly."
            )
        if not made:
            _refuse_generator_options(self.job_count, self.hours, self.xxl_share)
        return (*given, *made)

    def inputs(self) -> list[Path]:
        """Return the files that are read."""
        return self.traces or []


def _families(text: str | None) -> list[str]:
    names = [] if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FAMILY_NAMES:
            raise InputError(
                "is not a family of workloads",
                field="generate",
                value=name,
                remedy=f"Use one of: {', '.join(FAMILY_NAMES)}.",
            )
    return names


def _refuse_generator_options(jobs: int | None, hours: float | None, xxl_share: float) -> None:
    """Refuse options of generators if nothing is generated. Raises InputError."""
    given = {"jobs": jobs, "hours": hours, "xxl_share": xxl_share or None}
    for field, value in given.items():
        if value is not None:
            raise InputError(
                "belongs to generated workloads; a trace has its own jobs",
                field=field,
                value=value,
                remedy="Use --generate philly instead of a trace, or leave it out.",
            )
