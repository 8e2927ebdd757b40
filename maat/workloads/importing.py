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
from itertools import count, islice
from pathlib import Path

from maat.csv_output import defused
from maat.models.gpu_types import GPU_TYPES, is_slice, known_gpu_type, own_name, renamed
from maat.scheduling.errors import TraceError
from maat.shown_text import is_shown
from maat.vocabulary import MAX_TEXT, Adaptivity
from maat.workloads.formats.foreign import FOREIGN
from maat.workloads.formats.foreign.guesses import complete_columns
from maat.workloads.formats.foreign.mapped import mapped
from maat.workloads.formats.foreign.questions import ReadingOptions
from maat.workloads.formats.foreign.records import (
    Dropped,
    ForeignFormat,
    ForeignJob,
    FurtherRun,
    Note,
    Unusable,
)
from maat.workloads.generators import SizeClass
from maat.workloads.import_report import DroppedRows, Imported, PreviewedRow, shown_seconds
from maat.workloads.reading import MAX_JOBS
from maat.workloads.recorded import MOST_RECORDED_GPUS, RECORDED
from maat.workloads.workloads import TraceJob, Workload

MOST_PREVIEWED = 500
_ROWS_TOLD = 10
_CAUSES_TOLD = 20
_SNIFFED_RECORDS = 1000
_MOST_CAUSES, _OTHER = 100, "it has a fault that is not listed"
_DEFAULT_TENANT = "default"
_COUNTED = "its work counts with the job's first record"


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
        reading: How numbers and times are read, where a file does not show it.
    """

    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    rule: MappingRule = MappingRule.RECORDED
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    any_gpu_type: bool = False
    max_jobs: int = MAX_JOBS
    previewed: int = 20
    reading: ReadingOptions = field(default_factory=ReadingOptions)


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
    for name, each in FOREIGN.items():
        if name == but:
            continue
        try:
            first = list(islice(each.read(source, ReadingOptions()), _SNIFFED_RECORDS))
        except TraceError:
            continue
        if any(isinstance(found, ForeignJob) for found in first):
            return name
    return None


class _Import:
    """What has been read of a file so far."""

    def __init__(self, settings: ImportSettings) -> None:
        self.settings, self.names = settings, renamed(settings.gpu_types)
        self.kept: dict[str, TraceJob] = {}
        self.dropped: dict[str, DroppedRows] = {}
        self.preview: list[PreviewedRow] = []
        self.notes: list[str] = []
        self.rows = self.further_runs = self.renumbered = 0
        self.gpu_seconds = self.longest_seconds = 0.0
        self.left_out_types: set[str] = set()

    def take(self, found: ForeignJob | Dropped | FurtherRun | Note) -> None:
        if isinstance(found, Note):
            self.notes.append(found.text)
            return
        self.rows += 1
        match found:
            case FurtherRun():
                self.further_runs += 1
                was = f"{_shown(found.name)}: a further run"
                self._show(PreviewedRow(found.row, was, None, _COUNTED, further_run=True))
            case Dropped():
                self._drop(found)
                was = f"{found.column}: {_shown(found.value)}"
                self._show(PreviewedRow(found.row, was, None, _shown(found.cause)))
            case ForeignJob():
                self._take_job(found)

    def _take_job(self, found: ForeignJob) -> None:
        try:
            if len(self.kept) >= self.settings.max_jobs:
                raise _beyond(self.settings.max_jobs, found.row)
            job = self._job(found)
        except Unusable as wrong:
            self._drop(wrong.at(found.row, found.gpu_seconds))
            self._show(PreviewedRow(found.row, _record(found), None, _shown(wrong.cause)))
            return
        self.kept[job.name] = job
        self.gpu_seconds += found.gpu_seconds
        self.longest_seconds = max(self.longest_seconds, found.ran_seconds)
        self._show(PreviewedRow(found.row, _record(found), job, ""))

    def _job(self, found: ForeignJob) -> TraceJob:
        job = _job(found, self.settings, self.names)
        if job.gpu_types is not None:
            self.left_out_types.update(_unknown_types(found, self.names))
        if job.name in self.kept:
            self.renumbered += 1
            return replace(job, name=_numbered(job.name, self.kept))
        return job

    def _drop(self, lost: Dropped) -> None:
        _count(lost, self.dropped)

    def _show(self, row: PreviewedRow) -> None:
        if len(self.preview) < min(self.settings.previewed, MOST_PREVIEWED):
            self.preview.append(row)

    def rules(self, about: str) -> tuple[str, ...]:
        rules = [about, *_rules(self.settings, self.names), *self.notes]
        if self.renumbered:
            rules.append(
                f"{self.renumbered} jobs have a name that stood already: a number follows it."
            )
        if self.left_out_types:
            names = ", ".join(sorted(self.left_out_types)[:_ROWS_TOLD])
            rules.append(
                f"Of several types that a job may use, unknown ones do not count: {names}."
            )
        return tuple(map(_shown, rules))


def _imported(source: Path | str, settings: ImportSettings, name: str) -> Imported:
    settings, trace_format = _format_of(source, settings)
    settings.reading.tzinfo()
    known = _Import(settings)
    for found in trace_format.read(source, settings.reading):
        known.take(found)
    if not known.kept:
        raise _nothing(source, known.rows, known.dropped)
    first = min(job.submit_seconds for job in known.kept.values())
    moved = (_moved(job, first) for job in known.kept.values())
    ordered = sorted(moved, key=lambda job: job.submit_seconds)
    return Imported(
        Workload(name, tuple(ordered), settings.format),
        known.rows,
        known.further_runs,
        known.rules(trace_format.about),
        tuple(sorted(known.dropped.values(), key=lambda each: -each.count)),
        tuple(
            each if each.job is None else replace(each, job=_moved(each.job, first))
            for each in known.preview
        ),
        known.gpu_seconds / 3600.0,
        known.longest_seconds / 3600.0,
    )


def _format_of(
    source: Path | str, settings: ImportSettings
) -> tuple[ImportSettings, ForeignFormat]:
    """Return the format, and the settings with the columns of a CSV. Raises TraceError."""
    if settings.format == "csv":
        columns = settings.columns or complete_columns(source, {})
        return replace(settings, columns=columns), mapped(columns)
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
    return settings, FOREIGN[settings.format]


def _beyond(max_jobs: int, row: int) -> Unusable:
    return Unusable(
        f"there are {max_jobs} jobs before it",
        column="rows",
        value=row,
        remedy="Import a part of the file at a time.",
    )


def _numbered(name: str, kept: Mapping[str, TraceJob]) -> str:
    """Return a name that is free: the name with a number. Names end before the limit of texts."""
    stem = name[: MAX_TEXT - 10]
    return next(each for k in count(2) if (each := f"{stem}-{k}") not in kept)


def _job(found: ForeignJob, settings: ImportSettings, names: Mapping[str, str]) -> TraceJob:
    name, tenant = _text(found.name, "name"), _text(found.tenant or _DEFAULT_TENANT, "tenant")
    if found.gpu_count > MOST_RECORDED_GPUS:
        raise Unusable(
            f"it had more than {MOST_RECORDED_GPUS} GPUs",
            column="gpus",
            value=found.gpu_count,
            remedy="Correct the count.",
        )
    _refuse_slices(found, names)
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


def _refuse_slices(found: ForeignJob, names: Mapping[str, str]) -> None:
    """Raise Unusable for a job that had a part of a GPU, whatever else it may run on."""
    parts = [name for name in found.gpu_types if is_slice(name) and not _type_named(name, names)]
    if parts and len(parts) == len(found.gpu_types):
        raise Unusable(
            f"its GPU type {parts[0][:40]} is not known: it is a slice of a GPU",
            column="gpu_type",
            value=parts[0],
            remedy="Nothing: a slice is not as fast as a GPU. Or say which type it is like.",
        )


def _model_of(found: ForeignJob) -> str:
    """Return the model of its size class; of several, always the same one for a name."""
    hours = found.gpu_count * found.ran_seconds / 3600.0
    models = next(models for _, below, models in SIZE_CLASSES if hours < below)
    return models[zlib.crc32(found.name.encode("utf-8", "replace")) % len(models)]


def _gpu_types(found: ForeignJob, names: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the types that it may use; None for any. Unknown ones count if all are unknown."""
    known = [_type_named(name, names) for name in found.gpu_types]
    types = tuple(dict.fromkeys(each for each in known if each is not None))
    if found.gpu_types and not types:
        unknown = found.gpu_types[0]
        raise Unusable(
            f"its GPU type {unknown[:40]} is not known",
            column="gpu_type",
            value=unknown,
            remedy=f"Say which type it is like ({', '.join(GPU_TYPES)}), give it a name of its own "
            f"(--gpu-type {own_name(unknown)}={own_name(unknown)}), or let its jobs run on any.",
        )
    return types or None


def _type_named(name: str, names: Mapping[str, str]) -> str | None:
    return names.get(name.strip().lower()) or known_gpu_type(name)


def _unknown_types(found: ForeignJob, names: Mapping[str, str]) -> set[str]:
    return {name[:40] for name in found.gpu_types if _type_named(name, names) is None}


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
    known.gpu_hours += (lost.gpu_seconds or 0.0) / 3600.0
    known.without_hours += lost.gpu_seconds is None
    if len(known.rows) < _ROWS_TOLD:
        known.rows.append(lost.row)


def _shown(text: str) -> str:
    """Return a text of a file as every answer and every terminal can show it."""
    if is_shown(text):
        return text
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _record(found: ForeignJob) -> str:
    kind = f" {' or '.join(found.gpu_types)}" if found.gpu_types else ""
    was = f"{found.name}: {found.gpu_count}{kind} GPUs for {shown_seconds(found.ran_seconds)} s"
    return _shown(f"{was}, {found.state}" if found.state else was)


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
            "It is bound to the GPU types that its record names; else any type takes it, and it "
            "takes as long on each."
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
    most, *others = sorted(dropped.values(), key=lambda each: -each.count)[:_CAUSES_TOLD]
    also = "".join(f", {each.count} because {each.cause}" for each in others)
    return TraceError(
        f"holds no job that can be used: of {rows} rows, {most.count} were dropped because "
        f"{most.cause}{also}",
        field=most.column,
        value=most.example,
        remedy=most.remedy,
        source=where,
        row=most.rows[0],
    )
