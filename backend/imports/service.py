"""Reads uploads of other systems. Stores nothing: what is read goes into the next request."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import ValidationError

from backend.problems import FieldError, Invalid, invalid_input
from maat.api.clusters import MAX_NODES, NodeBody
from maat.api.imports import (
    SHOWN_LINES,
    ClusterImportBody,
    ClusterImportOut,
    ColumnQuestion,
    ColumnsOut,
    DroppedRowsOut,
    ImportedJob,
    ImportedTrace,
    LeftOutNode,
    NodeGroup,
    PreviewRow,
    TraceImportBody,
    TraceImportOut,
)
from maat.scheduling.errors import InputError
from maat.workloads.cluster_text import FoundCluster, read_cluster
from maat.workloads.formats.foreign.dates import DayOrder
from maat.workloads.formats.foreign.guesses import guessed_columns
from maat.workloads.formats.foreign.mapped import columns_of, first_lines
from maat.workloads.formats.foreign.numbers import Decimal
from maat.workloads.formats.foreign.questions import ReadingOptions, TraceQuestion
from maat.workloads.formats.foreign.units import Unit
from maat.workloads.formats.sia import write_workload
from maat.workloads.import_report import Imported, PreviewedRow
from maat.workloads.importing import ImportSettings, MappingRule, import_workload
from maat.workloads.workloads import TraceJob

_OWN_FIELDS = ("format", "mapping", "gpu_types", "units", "zone", "dates", "decimal")


def import_trace(body: TraceImportBody) -> TraceImportOut:
    """Read records of jobs. Raises Invalid naming row, column, value and remedy."""
    settings = ImportSettings(
        body.format,
        columns=body.mapping,
        rule=MappingRule(body.rule),
        gpu_types=body.gpu_types,
        any_gpu_type=body.any_gpu_type,
        max_jobs=body.max_jobs,
        previewed=body.preview_rows,
        reading=_reading(body),
    )
    try:
        found = import_workload(body.text, settings)
    except InputError as error:
        if isinstance(error, TraceQuestion):
            error.remedy = error.remedy_in_request
        raise invalid_input(error, _pointer(error)) from None
    return _shown(found)


def _reading(body: TraceImportBody) -> ReadingOptions:
    return ReadingOptions(
        zone=body.zone,
        dates=None if body.dates is None else DayOrder(body.dates),
        decimal=None if body.decimal is None else Decimal(body.decimal),
        units={field: Unit(name) for field, name in body.units.items()},
    )


def _pointer(error: InputError) -> str:
    """Return the field of the request that is wrong, or that answers a question."""
    if isinstance(error, TraceQuestion) and error.about:
        return f"/{error.field}/{error.about}"
    is_own = error.field in _OWN_FIELDS and error.row is None
    return f"/{error.field}" if is_own else "/text"


def _shown(found: Imported) -> TraceImportOut:
    return TraceImportOut(
        trace=ImportedTrace(kind="csv", text=write_workload(found.workload)),
        jobs=len(found.workload),
        rows=found.rows,
        further_runs=found.further_runs,
        span_seconds=found.span_seconds,
        gpu_hours=found.gpu_hours,
        longest_hours=found.longest_hours,
        most_gpus=found.most_gpus,
        dropped_gpu_hours=found.dropped_gpu_hours,
        totals=found.totals,
        losses=found.losses,
        rules=list(found.rules),
        dropped=[DroppedRowsOut(**asdict(each)) for each in found.dropped],  # type: ignore[typeddict-item]
        preview=[_row(each) for each in found.preview],
    )


def _row(each: PreviewedRow) -> PreviewRow:
    job = None if each.job is None else _job(each.job)
    return PreviewRow(
        row=each.row, was=each.was, job=job, why=each.why, further_run=each.further_run
    )


def _job(job: TraceJob) -> ImportedJob:
    return ImportedJob(
        name=job.name,
        submit_seconds=job.submit_seconds,
        model=job.model,
        gpu_count=job.gpu_count,
        gpu_types=None if job.gpu_types is None else list(job.gpu_types),
        work_scale=job.work_scale,
        tenant=job.tenant,
    )


def columns_in(text: str) -> ColumnsOut:
    """Return the header of a CSV, what its columns seem to be, and its first lines.

    Raises Invalid.
    """
    try:
        header, lines, guess = (
            columns_of(text),
            first_lines(text, SHOWN_LINES),
            guessed_columns(text),
        )
    except InputError as error:
        raise invalid_input(error, "/text") from None
    return ColumnsOut(
        columns=list(header),
        mapping=dict(guess.mapping),
        questions=[_question(each) for each in guess.questions],
        rows=lines,
    )


def _question(question: TraceQuestion) -> ColumnQuestion:
    return ColumnQuestion(
        meaning=question.about, problem=question.problem, choices=list(question.choices)
    )


def import_cluster(body: ClusterImportBody) -> ClusterImportOut:
    """Read nodes. Raises Invalid naming line, field, value and remedy."""
    try:
        found = read_cluster(body.text, gpu_types=body.gpu_types)
    except InputError as error:
        pointer = "gpu_types" if error.field == "gpu_types" else "text"
        raise invalid_input(error, f"/{pointer}") from None
    return _shown_cluster(found)


def _shown_cluster(found: FoundCluster) -> ClusterImportOut:
    return ClusterImportOut(
        format=found.format,
        nodes=_nodes(found),
        groups=[
            NodeGroup(gpu_type=kind, gpus_per_node=gpus, nodes=count)
            for (kind, gpus), count in found.groups.items()
        ],
        gpu_count=sum(node.gpu_count for node in found.nodes),
        left_out=[
            LeftOutNode(row=each.row, name=each.name, why=each.why) for each in found.left_out
        ],
        renamed=dict(found.renamed),
        out_of_service={
            node.name: node.out_of_service for node in found.nodes if node.out_of_service
        },
        asleep=[node.name for node in found.nodes if node.is_asleep],
        unknown_types=list(found.unknown_types),
    )


def _nodes(found: FoundCluster) -> list[NodeBody]:
    """Return the nodes as a new cluster takes them. Raises Invalid."""
    if len(found.nodes) > MAX_NODES:
        message, remedy = f"The text has more than {MAX_NODES} nodes.", "Give a part of them."
        raise Invalid(message, errors=[FieldError("/text", "too_many_nodes", message, remedy)])
    nodes: list[NodeBody] = []
    for node in found.nodes:
        try:
            nodes.append(NodeBody(name=node.name, gpu_type=node.gpu_type, gpu_count=node.gpu_count))
        except ValidationError:
            message = f"Row {node.row} has a node whose name cannot be used."
            remedy = "Use letters, digits, points, and - or _."
            raise Invalid(
                message,
                errors=[FieldError("/text", "node", message, remedy, node.name[:80], node.row)],
            ) from None
    return nodes
