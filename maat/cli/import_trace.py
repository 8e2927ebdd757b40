"""`maat import trace`: another system's records of jobs as a trace, with a report. No service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.numbers import whole_option
from maat.cli.output import print_json, say
from maat.cli.service import table_of
from maat.csv_input import Blame
from maat.library.files import check_writable
from maat.scheduling.errors import MaatError, ParameterError, TraceError
from maat.workloads.formats.foreign.dates import DayOrder
from maat.workloads.formats.foreign.guesses import complete_columns
from maat.workloads.formats.foreign.mapped import FIELDS, TIMES
from maat.workloads.formats.foreign.numbers import Decimal
from maat.workloads.formats.foreign.questions import ReadingOptions
from maat.workloads.formats.foreign.record_table import readable_twice
from maat.workloads.formats.foreign.units import Unit
from maat.workloads.formats.sia import write_workload
from maat.workloads.import_report import DroppedRows, Imported, PreviewedRow, shown_seconds
from maat.workloads.importing import (
    MOST_PREVIEWED,
    ImportSettings,
    MappingRule,
    import_workload,
)
from maat.workloads.reading import MAX_JOBS


class Format(StrEnum):
    """What wrote the file."""

    SACCT = "sacct"
    PHILLY = "philly"
    HELIOS = "helios"
    CSV = "csv"


def import_trace(
    file: Annotated[Path, typer.Argument(help="What sacct -P wrote, or a published trace.")],
    format_: Annotated[Format, typer.Option("--format", help="What wrote it.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the trace here; without it, only the report."),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="MEANING=COLUMN",
            help=f"For csv: which column is {', '.join(FIELDS)}; the others are guessed by names "
            "and values. May be repeated.",
        ),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEANING=UNIT",
            help="For csv: the unit of numbers of duration, submit, start or end: "
            f"{', '.join(Unit)}. May be repeated.",
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="Of times without a zone, such as Europe/Berlin or +01:00; else they are UTC.",
        ),
    ] = None,
    dates: Annotated[
        DayOrder | None, typer.Option(help="Which number of 02/03/2026 is the day.")
    ] = None,
    decimal: Annotated[
        Decimal | None, typer.Option(help="What stands before the decimals of a number.")
    ] = None,
    rule: Annotated[
        MappingRule,
        typer.Option(help="What a job becomes: as recorded, or a training of its size class."),
    ] = MappingRule.RECORDED,
    gpu_type: Annotated[
        list[str] | None,
        typer.Option(metavar="THEIRS=OURS", help="What a GPU type counts as. May be repeated."),
    ] = None,
    any_gpu_type: Annotated[
        bool, typer.Option("--any-gpu-type", help="Let jobs run on any type.")
    ] = False,
    max_jobs: Annotated[
        int, whole_option("--max-jobs", least=1, most=MAX_JOBS, help="Drop the jobs beyond.")
    ] = MAX_JOBS,
    preview: Annotated[
        int,
        whole_option("--preview", least=0, most=MOST_PREVIEWED, help="Rows to show one by one."),
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Read Slurm's, Philly's, Helios's or any CSV's jobs as a trace, and say what was dropped."""
    if output is not None:
        check_writable(output, field="output", inputs=[file])
    source = readable_twice(file, Blame(TraceError, str(file)))
    given = pairs_of(map_ or [], field="map", example="submit=SubmitTime")
    settings = ImportSettings(
        format_.value,
        columns=complete_columns(source, given) if format_ is Format.CSV else given,
        rule=rule,
        gpu_types=pairs_of(gpu_type or [], field="gpu_type", example="titan=v100"),
        any_gpu_type=any_gpu_type,
        max_jobs=max_jobs,
        previewed=preview,
        reading=ReadingOptions(zone, dates, decimal, units_of(unit or [])),
    )
    found = import_workload(source, settings)
    if output is not None:
        _write(output, write_workload(found.workload))
    if as_json:
        print_json(_as_json(found))
    else:
        say("\n".join(report_lines(found, output)))


def pairs_of(given: Sequence[str], *, field: str, example: str) -> dict[str, str]:
    """Return NAME=VALUE pairs. Raises ParameterError."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name.strip() and equals and value.strip()) or name.strip() in found:
            raise ParameterError(
                "is no NAME=VALUE, or names one twice",
                field=field,
                value=each,
                remedy=f"Write for example --{field.replace('_', '-')} {example}.",
            )
        found[name.strip()] = value.strip()
    return found


def units_of(given: Sequence[str]) -> dict[str, Unit]:
    """Return units by the meaning of a column. Raises ParameterError."""
    found: dict[str, Unit] = {}
    for field, name in pairs_of(given, field="unit", example="duration=min").items():
        if field not in ("duration", *TIMES) or name not in list(Unit):
            raise ParameterError(
                "is no column of times with a unit",
                field="unit",
                value=f"{field}={name}",
                remedy=f"Give duration, {', '.join(TIMES)}, and one of {', '.join(Unit)}.",
            )
        found[field] = Unit(name)
    return found


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as failed:
        raise MaatError(
            f"output: {path} cannot be written ({failed.strerror}). Give a file where there is "
            "space."
        ) from failed


def report_lines(found: Imported, output: Path | None = None) -> list[str]:
    """Return what became of the rows, the rules, the first rows, and what was dropped and why."""
    lines = [
        f"{len(found.workload)} jobs of {found.rows} rows{_further(found)}.",
        found.totals,
    ]
    lines += [found.losses] if found.losses else []
    lines += found.rules
    if found.preview:
        rows = [_preview_cells(each) for each in found.preview]
        lines += ["", table_of(("row", "was", "becomes"), rows)]
    if found.dropped:
        columns = ("dropped", "GPU-hours", "because", "rows", "such as", "remedy")
        rows = [_dropped_cells(each) for each in found.dropped]
        lines += ["", table_of(columns, rows)]
    if output is not None:
        lines += ["", f"Written to {output}. Next: maat simulate {output} --cluster SHAPE."]
    return lines


def _further(found: Imported) -> str:
    """Return how many rows are further runs of a job."""
    return f", {found.further_runs} of them further runs of a job" if found.further_runs else ""


def _dropped_cells(each: DroppedRows) -> list[str]:
    known = f"{each.gpu_hours:,.1f}" if each.without_hours < each.count else "unknown"
    return [
        str(each.count),
        f"{known}, and unknown" if 0 < each.without_hours < each.count else known,
        each.cause,
        ", ".join(map(str, each.rows)) + (", ..." if each.count > len(each.rows) else ""),
        f"{each.column} = {each.example!r}",
        each.remedy,
    ]


def _preview_cells(each: PreviewedRow) -> list[str]:
    job = each.job
    if job is None:
        return [str(each.row), each.was, each.outcome]
    where = "" if job.gpu_types is None else f" on {' '.join(job.gpu_types)}"
    work = f", {shown_seconds(job.work_scale)} s" if job.model == "as-recorded" else ""
    at = f"at {shown_seconds(job.submit_seconds)} s"
    return [str(each.row), each.was, f"{job.model}, {job.gpu_count} GPUs{where}{work}, {at}"]


def _as_json(found: Imported) -> dict[str, Any]:
    return {
        "jobs": len(found.workload),
        "rows": found.rows,
        "further_runs": found.further_runs,
        "gpu_hours": found.gpu_hours,
        "longest_hours": found.longest_hours,
        "most_gpus": found.most_gpus,
        "span_seconds": found.span_seconds,
        "dropped_gpu_hours": found.dropped_gpu_hours,
        "dropped_without_hours": found.without_hours,
        "rules": list(found.rules),
        "dropped": [asdict(each) for each in found.dropped],
        "preview": [asdict(each) for each in found.preview],
    }
