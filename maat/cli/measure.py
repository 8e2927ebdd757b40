"""`maat measure pairs`: how much two commands slow each other on the same GPUs."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maat.cli.service import AsJson, show, table_of
from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    from maat.laboratory.pair_measurement import MeasuredCommand, PairSlowdown

COLUMNS = ("victim", "partner", "gpu_count", "slowdown")
_PAYS_BELOW = 1.5  # equal slowdowns, the newcomer ends last (SJF-BSBF, theorem 1)


def measure_pairs(
    commands: Annotated[
        list[str],
        typer.Argument(help="Two commands, each in quotes, which print a line after every step."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            help="The CSV for --interference; in one that exists, rows of these names are replaced "
            "and others stay."
        ),
    ] = Path("pairs.csv"),
    names: Annotated[
        str | None,
        typer.Option(help="What both are called, as jobs by their model: bert,resnet50."),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option(help="GPUs of both, as CUDA_VISIBLE_DEVICES; default: as it is set, one GPU."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="How long each of three runs is measured.")
    ] = 60.0,
    step_line: Annotated[
        str, typer.Option(help="A regular expression: lines that it finds are steps.")
    ] = "",
    warm_up_steps: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="First steps of a process, not counted.")
    ] = 3,
    as_json: AsJson = False,
) -> None:
    """Run two commands alone and together, and write what they lose by sharing their GPUs."""
    from maat.laboratory.pair_measurement import measure_pair

    first, second = _commands(commands, names, step_line)
    _check_output(output)
    env = {} if gpus is None else {"CUDA_VISIBLE_DEVICES": gpus}
    gpu_count = 1 if gpus is None else len(gpus.split(","))
    pairs = measure_pair(first, second, seconds=seconds, warm_up_steps=warm_up_steps, env=env)
    rows = [
        [pair.victim, pair.partner, str(gpu_count), f"{pair.slowdown:.4f}"]
        for pair in dict.fromkeys(pairs)
    ]
    put_rows(output, rows)
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    show(found, as_json, "\n".join([*_lines(pairs), f"Written to {output}."]))


def put_rows(output: Path, rows: Iterable[Sequence[str]]) -> None:
    """Put rows into a table of interference, in place of those of the same pair and GPU count.

    Of several new figures of a pair, which has one in the table, the worst is written.
    """
    before: list[list[str]] = []
    if output.exists():
        with output.open(newline="", encoding="utf-8") as file:
            before = [row for row in csv.reader(file) if row][1:]
    worst: dict[tuple[str, ...], Sequence[str]] = {}
    for row in rows:
        key = tuple(row[:3])
        if key not in worst or float(row[3]) > float(worst[key][3]):
            worst[key] = row
    kept = [row for row in before if tuple(row[:3]) not in worst]
    beside = output.with_name(f"{output.name}.new")
    with beside.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *kept, *worst.values()])
    beside.replace(output)


def _commands(
    given: Sequence[str], names: str | None, step_line: str
) -> tuple[MeasuredCommand, MeasuredCommand]:
    """Read the commands. Raises ParameterError."""
    from maat.laboratory.pair_measurement import MeasuredCommand

    split = [shlex.split(command) for command in given]
    if len(split) != 2 or not all(split):
        remedy = 'Write each in quotes: maat measure pairs "python a.py" "python b.py".'
        raise ParameterError("are not two commands", field="commands", value=given, remedy=remedy)
    called = [Path(argv[-1]).stem for argv in split] if names is None else names.split(",")
    if len(called) != 2 or not all(called):
        remedy = "Write both, with a comma between them: bert,resnet50."
        raise ParameterError("are not two names", field="names", value=names, remedy=remedy)
    try:
        lines = re.compile(step_line)
    except re.error as error:
        remedy = "Write for example 'step [0-9]+'."
        raise ParameterError(
            f"is no regular expression: {error}", field="step_line", value=step_line, remedy=remedy
        ) from None
    first, second = (
        MeasuredCommand(name, tuple(argv), lines) for name, argv in zip(called, split, strict=True)
    )
    return first, second


def _check_output(output: Path) -> None:
    """Raise ParameterError if rows cannot be added: a measurement takes minutes."""
    try:
        with output.open("a+", encoding="utf-8") as file:
            is_new = file.tell() == 0
            file.seek(0)
            head = file.readline().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"cannot be written: {error}", field="output", value=str(output), remedy="Name another."
        ) from None
    if not is_new and head != ",".join(COLUMNS):
        raise ParameterError(
            f"has not the columns {', '.join(COLUMNS)}",
            field="output",
            value=str(output),
            remedy="Name a new file.",
        )


def _lines(pairs: Sequence[PairSlowdown]) -> list[str]:
    """Return the table, and whether a job that waits would share."""
    columns = ("victim", "beside", "alone, s", "together, s", "steps", "slowdown")
    rows = [
        [
            pair.victim,
            pair.partner,
            f"{pair.alone.median:.4g}",
            f"{pair.together.median:.4g}",
            str(len(pair.together.steps)),
            f"{pair.slowdown:.2f}",
        ]
        for pair in pairs
    ]
    pays = all(pair.slowdown < _PAYS_BELOW for pair in pairs)
    words = f"Both below {_PAYS_BELOW:g}: sharing beats waiting."
    if not pays:
        words = f"Not both below {_PAYS_BELOW:g}: sharing pays only for a job that is much shorter."
    return [table_of(columns, rows), words]
