"""Turns other systems' records of jobs into a workload, with a report of what was dropped and why.

No record says what a job trained. So an explicit rule says what it becomes, and the report says the
rule:

- RECORDED: a rigid job of the model `as-recorded`, on as many GPUs, of the same type where the
  record names one, for as many seconds as it ran.
- SIZE_CLASS: as the papers of Pollux (section 5.1) and Sia (section 4.1) made their traces: its
  GPU-hours give a size class, the class a model of the catalog, which is trained once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path

from maat.csv_output import defused
from maat.models.gpu_types import GPU_TYPES, known_gpu_type, renamed
from maat.scheduling.errors import TraceError
from maat.shown_text import is_shown
from maat.vocabulary import MAX_TEXT, Adaptivity
from maat.workloads.formats.foreign import FOREIGN
from maat.workloads.formats.foreign.mapped import mapped
from maat.workloads.formats.foreign.records import Dropped, ForeignFormat, ForeignJob, Unusable
from maat.workloads.generators import SizeClass
from maat.workloads.reading import MAX_JOBS
from maat.workloads.recorded import MOST_RECORDED_GPUS, RECORDED
from maat.workloads.workloads import TraceJob, Workload

MOST_PREVIEWED = 500
_ROWS_TOLD = 10
_SNIFFED_RECORDS = 1000
_MOST_CAUSES, _OTHER = 100, "it has a fault that is not listed"
_DEFAULT_TENANT = "default"


class MappingRule(StrEnum):
    """What a record becomes."""

    RECORDED = "recorded"
    SIZE_CLASS = "size-class"


# GPU-hours below which a job is of a class, and the models of the class; the last has no bound.
SIZE_CLASSES: tuple[tuple[SizeClass, float, tuple[str, ...]], ...] = (
    (SizeClass.SMALL, 1.0, ("cifar10",)),
    (SizeClass.MEDIUM, 10.0, ("bert", "deepspeech2")),
    (SizeClass.LARGE, 100.0, ("yolov3",)),
    (SizeClass.EXTRA_LARGE, float("inf"), ("imagenet",)),
)


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """How records are read.

    Attributes:
        format: A name in FOREIGN, or `csv`.
        columns: Of `csv`, by what they mean.
        rule: What a record becomes.
        gpu_types: What a type's name in the records stands for, besides the names that are known.
        any_gpu_type: Whether a job may run on any type, whatever its record says.
        max_jobs: Records beyond are dropped.
        previewed: How many of the first records the report shows one by one.
    """

    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    rule: MappingRule = MappingRule.RECORDED
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    any_gpu_type: bool = False
    max_jobs: int = MAX_JOBS
    previewed: int = 20


@dataclass(frozen=True, slots=True)
class PreviewedRow:
    """One record: what it was, and what it becomes; `job` None: it is dropped, as `why` says."""

    row: int
    was: str
    job: TraceJob | None
    why: str


@dataclass(slots=True)
class DroppedRows:
    """The records dropped for one cause: how many, and the first of them."""

    cause: str
    remedy: str
    column: str
    example: str
    count: int = 0
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Imported:
    """A workload, and the report of how it came about. `rules`: sentences."""

    workload: Workload
    rows: int
    rules: tuple[str, ...]
    dropped: tuple[DroppedRows, ...]
    preview: tuple[PreviewedRow, ...]


def import_workload(
    source: Path | str, settings: ImportSettings, *, name: str | None = None
) -> Imported:
    """Read a file (Path) or its text (str).

    Time begins at the first submission. Raises TraceError if the file is not of the format, or
    nothing of it becomes a job; it names the format that the file seems to have.
    """
    try:
        return _imported(source, settings, name or settings.format)
    except TraceError as wrong:
        known = settings.format in (*FOREIGN, "csv")
        if known and (seems := seeming_format(source, but=settings.format)):
            raise TraceError(
                wrong.problem,
                field=wrong.field,
                value=wrong.value,
                remedy=f"The file looks like {FOREIGN[seems].title}: give the format {seems}.",
                source=wrong.source,
                row=wrong.row,
            ) from None
        raise


def seeming_format(source: Path | str, *, but: str) -> str | None:
    """Return the format, other than `but`, in which the first records give a job; None if none."""
    for name, one in FOREIGN.items():
        if name == but:
            continue
        try:
            first = list(islice(one.read(source), _SNIFFED_RECORDS))
        except TraceError:
            continue
        if any(isinstance(found, ForeignJob) for found in first):
            return name
    return None


def _imported(source: Path | str, settings: ImportSettings, name: str) -> Imported:
    trace_format = _format_of(settings)
    names = renamed(settings.gpu_types)
    kept: dict[str, TraceJob] = {}
    dropped: dict[str, DroppedRows] = {}
    preview: list[PreviewedRow] = []
    rows = 0
    for rows, found in enumerate(trace_format.read(source), start=1):
        job, lost = _become(found, settings, names, kept)
        if job is not None:
            kept[job.name] = job
        if lost is not None:
            _count(lost, dropped)
        if rows <= min(settings.previewed, MOST_PREVIEWED):
            preview.append(_previewed(found, job, lost))
    if not kept:
        raise _nothing(source, rows, dropped)
    first = min(job.submit_seconds for job in kept.values())
    ordered = sorted(
        (_moved(job, first) for job in kept.values()), key=lambda job: job.submit_seconds
    )
    shown = tuple(
        each if each.job is None else replace(each, job=_moved(each.job, first)) for each in preview
    )
    return Imported(
        Workload(name, tuple(ordered), settings.format),
        rows,
        (trace_format.about, *_rules(settings, names)),
        tuple(sorted(dropped.values(), key=lambda each: -each.count)),
        shown,
    )


def _format_of(settings: ImportSettings) -> ForeignFormat:
    if settings.format == "csv":
        return mapped(settings.columns)
    if settings.format not in FOREIGN:
        raise TraceError(
            "is no format that is read",
            field="format",
            value=settings.format,
            remedy=f"Use one of: {', '.join((*FOREIGN, 'csv'))}.",
        )
    if settings.columns:
        raise TraceError(
            "belongs to the format csv",
            field="mapping",
            value=settings.format,
            remedy="Leave it out: the columns of this format have names.",
        )
    return FOREIGN[settings.format]


def _become(
    found: ForeignJob | Dropped,
    settings: ImportSettings,
    names: Mapping[str, str],
    kept: Mapping[str, TraceJob],
) -> tuple[TraceJob | None, Dropped | None]:
    if isinstance(found, Dropped):
        return None, found
    try:
        if len(kept) >= settings.max_jobs:
            raise Unusable(
                f"there are {settings.max_jobs} jobs before it",
                column="rows",
                value=found.row,
                remedy="Import a part of the file at a time.",
            )
        job = _job(found, settings, names)
        if job.name in kept:
            raise Unusable(
                "its name stood already",
                column="name",
                value=job.name,
                remedy="Give every job a name of its own.",
            )
    except Unusable as wrong:
        return None, wrong.at(found.row)
    return job, None


def _job(found: ForeignJob, settings: ImportSettings, names: Mapping[str, str]) -> TraceJob:
    name, tenant = _text(found.name, "name"), _text(found.tenant or _DEFAULT_TENANT, "tenant")
    if found.gpu_count > MOST_RECORDED_GPUS:
        raise Unusable(
            f"it had more than {MOST_RECORDED_GPUS} GPUs",
            column="gpus",
            value=found.gpu_count,
            remedy="Correct the count.",
        )
    if settings.rule is MappingRule.SIZE_CLASS:
        return TraceJob(
            name=name,
            tenant=tenant,
            submit_seconds=found.submitted,
            model=_model_of(found),
            gpu_count=found.gpu_count,
        )
    return TraceJob(
        name=name,
        tenant=tenant,
        submit_seconds=found.submitted,
        model=RECORDED,
        gpu_count=found.gpu_count,
        work_scale=found.ran_seconds,
        adaptivity=Adaptivity.RIGID,
        gpu_types=None if settings.any_gpu_type else _gpu_types(found, names),
    )


def _model_of(found: ForeignJob) -> str:
    """Return the model of its size class; of several, always the same one for a name."""
    hours = found.gpu_count * found.ran_seconds / 3600.0
    models = next(models for _, below, models in SIZE_CLASSES if hours < below)
    return models[zlib.crc32(found.name.encode("utf-8", "replace")) % len(models)]


def _gpu_types(found: ForeignJob, names: Mapping[str, str]) -> tuple[str, ...] | None:
    if found.gpu_type is None:
        return None
    known = names.get(found.gpu_type.strip().lower()) or known_gpu_type(found.gpu_type)
    if known is None:
        raise Unusable(
            f"its GPU type {found.gpu_type[:40]} is not known",
            column="gpu_type",
            value=found.gpu_type,
            remedy=f"Say which type it is like ({', '.join(GPU_TYPES)}), or let its jobs run on "
            "any.",
        )
    return (known,)


def _text(text: str, column: str) -> str:
    if not text or len(text) >= MAX_TEXT or not is_shown(text):
        raise Unusable(
            f"it has no usable {column}",
            column=column,
            value=text,
            remedy=f"Use 1 to {MAX_TEXT - 1} printable characters.",
        )
    return defused(text)


def _count(lost: Dropped, dropped: dict[str, DroppedRows]) -> None:
    cause = _shown(lost.cause)
    cause = cause if cause in dropped or len(dropped) < _MOST_CAUSES else _OTHER
    known = dropped.setdefault(
        cause, DroppedRows(cause, lost.remedy, lost.column, _shown(lost.value))
    )
    known.count += 1
    if len(known.rows) < _ROWS_TOLD:
        known.rows.append(lost.row)


def _shown(text: str) -> str:
    """Return a text of a file as every answer and every terminal can show it."""
    if is_shown(text):
        return text
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _previewed(
    found: ForeignJob | Dropped, job: TraceJob | None, lost: Dropped | None
) -> PreviewedRow:
    why = "" if lost is None else _shown(lost.cause)
    if isinstance(found, Dropped):
        return PreviewedRow(found.row, f"{found.column}: {_shown(found.value)}", job, why)
    kind = "" if found.gpu_type is None else f" {found.gpu_type}"
    was = f"{found.name}: {found.gpu_count}{kind} GPUs for {found.ran_seconds:g} s"
    state = f", {found.state}" if found.state else ""
    return PreviewedRow(found.row, _shown(f"{was}{state}"), job, why)


def _moved(job: TraceJob, first: float) -> TraceJob:
    return replace(job, submit_seconds=job.submit_seconds - first)


def _rules(settings: ImportSettings, names: Mapping[str, str]) -> Iterator[str]:
    if settings.rule is MappingRule.SIZE_CLASS:
        classes = "; ".join(
            f"{kind.value} ({'below' if below < 1e9 else 'above'} "
            f"{below if below < 1e9 else SIZE_CLASSES[-2][1]:g} GPU-hours): {' or '.join(models)}"
            for kind, below, models in SIZE_CLASSES
        )
        yield (
            "Each becomes an adaptive job that trains a model of the catalog once, by its size: "
            f"{classes}. What it asked for stays its request."
        )
        return
    yield (
        "Each becomes a rigid job, on as many GPUs, for as many seconds as it ran; a start or a "
        "restart takes 30 s more."
    )
    if settings.any_gpu_type:
        yield "It may run on any GPU type, and takes as long on each."
    else:
        yield (
            "It is bound to its GPU type where the record names one; else any type takes it, and "
            "it takes as long on each."
        )
    for name, known in names.items():
        yield f"{name} counts as {known}."


def _nothing(source: Path | str, rows: int, dropped: Mapping[str, DroppedRows]) -> TraceError:
    where = str(source) if isinstance(source, Path) else None
    if not dropped:
        return TraceError(
            "holds no jobs",
            field="rows",
            value=rows,
            remedy="Give a file with at least one job.",
            source=where,
        )
    most = max(dropped.values(), key=lambda each: each.count)
    return TraceError(
        f"holds no job that can be used: of {rows} rows, {most.count} were dropped because "
        f"{most.cause}",
        field=most.column,
        value=most.example,
        remedy=most.remedy,
        source=where,
        row=most.rows[0],
    )
