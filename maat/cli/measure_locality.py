"""`maat measure locality`: what a step of a command costs across nodes."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maat.api.commands import stem_of
from maat.cli.service import AsJson, show, table_of
from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    from maat.laboratory.locality_measurement import MeasuredSpread, SpreadCommand
    from maat.laboratory.measured_runs import Launcher
    from maat.models.locality_table import MeasuredSteps


def measure_locality(
    command: Annotated[
        list[str], typer.Argument(help="The command, after --: -- python train.py --lr 0.1.")
    ],
    gpu_type: Annotated[str, typer.Option(help="The GPU type of both runs, such as t4.")],
    gpus: Annotated[
        int, typer.Option(min=2, max=4096, help="GPUs of both runs, one process each.")
    ] = 2,
    nodes: Annotated[
        int, typer.Option(min=2, max=4096, help="Nodes of the second run; the first has one.")
    ] = 2,
    per_gpu_batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, help="Samples of a step on each GPU, of a script with maat.agent."
        ),
    ] = None,
    step_line: Annotated[
        str | None,
        typer.Option(
            help="Of a script without maat.agent: a regular expression; lines of its first process "
            "that it finds are steps."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What it is called, as jobs by their model; default: the script's name."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="How long the steps of each run may take.")
    ] = 60.0,
    warm_up_steps: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="First step lines, which do not count.")
    ] = 3,
    slurm: Annotated[
        bool,
        typer.Option(
            help="Start both runs with srun, from a folder that all nodes see. Without, every node "
            "is this machine, and only emulated devices differ."
        ),
    ] = False,
    srun: Annotated[
        str, typer.Option(help="More options of srun, such as '--partition=gpu --time=10'.")
    ] = "",
    output: Annotated[
        Path,
        typer.Option(
            help="The CSV for --locality-penalty and upload; in one that exists, the "
            "row of the same measurement is replaced."
        ),
    ] = Path("locality.csv"),
    as_json: AsJson = False,
) -> None:
    """Run a command on the GPUs of one node and on as many of several; write its steps."""
    from maat.laboratory.locality_measurement import SpreadCommand, measure_spread

    wanted = SpreadCommand(
        model=stem_of(command) if name is None else name,
        argv=tuple(command),
        cwd=str(Path.cwd()),
        gpu_type=gpu_type,
        gpu_count=gpus,
        per_gpu_batch_size=per_gpu_batch_size or 0,
        step_line=None if step_line is None else _pattern(step_line),
        warm_up_steps=warm_up_steps,
    )
    _check(wanted, nodes, slurm=slurm, srun=srun)
    before = _rows_before(output)
    found = measure_spread(wanted, _launcher(slurm, srun), seconds=seconds, node_count=nodes)
    _write(output, before, found.row)
    shown = {**found.row._asdict(), "penalty": found.penalty}
    show(shown, as_json, "\n".join([*_lines(found), f"Written to {output}."]))


def _launcher(slurm: bool, srun: str) -> Launcher:
    from maat.laboratory.measured_runs import LocalLauncher, SlurmLauncher, words_of

    return SlurmLauncher(Path.cwd(), words_of(srun, field="srun")) if slurm else LocalLauncher()


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ParameterError(
            f"is no regular expression: {error}",
            field="step_line",
            value=text,
            remedy="Write for example 'step [0-9]+'.",
        ) from None


def _check(wanted: SpreadCommand, nodes: int, *, slurm: bool, srun: str) -> None:
    """Raise ParameterError for options that do not fit each other."""
    if wanted.gpu_count % nodes:
        raise ParameterError(
            "is no multiple of the nodes",
            field="gpus",
            value=wanted.gpu_count,
            remedy=f"Give as many GPUs of each node: a multiple of {nodes}.",
        )
    if srun and not slurm:
        raise ParameterError(
            "has options of srun, which is not used",
            field="srun",
            value=srun,
            remedy="Give --slurm too.",
        )
    if wanted.step_line is None and not wanted.per_gpu_batch_size:
        raise ParameterError(
            "is missing",
            field="per_gpu_batch_size",
            remedy="Give it for a script with maat.agent; for another give --step-line, the lines "
            "that it prints after every step.",
        )


def _rows_before(output: Path) -> list[MeasuredSteps]:
    """Return the rows of a table that exists: a measurement takes minutes. Raises InputError."""
    from maat.models.locality_table import read_locality

    if output.exists():
        return list(read_locality(output).rows)
    if not output.absolute().parent.is_dir():
        raise ParameterError(
            "cannot be written: there is no such folder",
            field="output",
            value=str(output),
            remedy="Make its folder first, or name another file.",
        )
    return []


def _write(output: Path, before: Sequence[MeasuredSteps], row: MeasuredSteps) -> None:
    """Write the table, whole or not at all, with the row in place of one of the same key."""
    from maat.models.locality_table import COLUMNS

    beside = output.with_name(f"{output.name}.new")
    with beside.open("w", newline="", encoding="utf-8") as file:
        kept = [one for one in before if one.key != row.key]
        csv.writer(file).writerows([COLUMNS, *kept, row])
    beside.replace(output)


def _lines(found: MeasuredSpread) -> list[str]:
    rows = [
        ["1", f"{found.within.seconds:.4g}", str(found.within.steps)],
        [str(found.node_count), f"{found.across.seconds:.4g}", str(found.across.steps)],
    ]
    words = f"Across nodes a step of {found.command.model} takes {found.penalty:g} times as long."
    return [table_of(("nodes", "step, s", "steps"), rows), words]
