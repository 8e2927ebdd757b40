"""The options for the seeds of runs, their processes and the cache of results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.numbers import whole_option
from maat.library.numbers import whole_number_reader
from maat.scheduling.errors import ParameterError
from maat.workloads.generators import MAX_SEED

Seed = Annotated[
    int, whole_option("--seed", least=0, most=MAX_SEED, help="Seed of all random choices.")
]


@dataclass(frozen=True)
class RunOptions:
    """The seeds and processes of runs."""

    seed_list: Annotated[
        str,
        typer.Option(
            "--seeds", help="Seeds of every run; a generated workload is drawn again with each."
        ),
    ] = "0"
    processes: Annotated[
        int | None,
        whole_option("--workers", least=1, most=256, help="Processes; default: one per core."),
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of results: stored ones are not simulated again."),
    ] = None

    @property
    def workers(self) -> int:
        return self.processes or os.cpu_count() or 1

    def seeds(self) -> tuple[int, ...]:
        """Read the seeds. Raises ParameterError."""
        read = whole_number_reader("seeds", least=0, most=MAX_SEED)
        try:
            return tuple(read(part) for part in self.seed_list.split(","))
        except ParameterError as refused:
            raise ParameterError(
                "are not whole numbers from 0 up, separated by commas",
                field="seeds",
                value=refused.value,
                remedy="Write for example --seeds 0,1,2.",
            ) from None
