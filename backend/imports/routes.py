"""Routes of imports. They read what is sent, and store nothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.imports.service import columns_in, import_cluster, import_trace
from backend.web.bodies import NODES_BYTES, TRACE_BYTES, takes_bytes
from backend.web.strict_json import StrictRoute
from maat.api.imports import (
    ClusterImportBody,
    ClusterImportOut,
    ColumnsBody,
    ColumnsOut,
    TraceImportBody,
    TraceImportOut,
)

router = APIRouter(prefix="/imports", tags=["simulations"], route_class=StrictRoute)

Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]
Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]


@router.post("/trace", operation_id="importTrace")
@takes_bytes(TRACE_BYTES)
def read_trace(_: Runner, body: TraceImportBody) -> TraceImportOut:
    """Read another system's records of jobs as a trace.

    The answer has the trace, what became of the first records one by one, and how many were dropped
    for which cause. Nothing is stored: give the trace to a simulation.
    """
    return import_trace(body)


@router.post("/columns", operation_id="readColumns")
@takes_bytes(TRACE_BYTES)
def read_columns(_: Runner, body: ColumnsBody) -> ColumnsOut:
    """Read the header of a CSV, to say which of its columns means what."""
    return columns_in(body.text)


@router.post("/cluster", operation_id="importCluster")
@takes_bytes(NODES_BYTES)
def read_nodes(_: Writer, body: ClusterImportBody) -> ClusterImportOut:
    """Read another system's nodes. Nothing is stored: give `nodes` to a new cluster."""
    return import_cluster(body)
