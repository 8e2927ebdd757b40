"""Eight GPUs, first come, first served: jobs whose future is plain, and questions about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from live_samples import make_cluster, make_owner, step_at, submit

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import ForecastInterest, Operation, WhatIf
from maat.vocabulary import Adaptivity
from worker.forecasts import what_if

MORE_NODES = {"add_nodes": [{"gpu_type": "a100", "gpu_count": 8, "count": 2}]}


def make_fifo(database: Database, **fields: Any) -> str:
    """Make a cluster of which somebody reads forecasts."""
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky", **fields)
    set_read_seconds_ago(database, cluster_id, 0.0)
    return cluster_id


def set_read_seconds_ago(database: Database, cluster_id: str, seconds: float) -> None:
    """Let the forecasts of a cluster have been read last so long ago."""
    with database.session_scope() as session:
        at = utc_now() - timedelta(seconds=seconds)
        session.merge(ForecastInterest(cluster_id=cluster_id, at=at))


def submit_rigid(database: Database, cluster_id: str, *, gpus: int = 8, **fields: Any) -> str:
    """Of 8 GPUs: on the A100 alone, so that a second one waits for the first."""
    values = {
        "adaptivity": Adaptivity.RIGID.value,
        "gpu_count": gpus,
        "batch_size": 512,
        "gpu_types": ["a100"],
        **fields,
    }
    return submit(database, cluster_id, **values)[0]


def one_runs(database: Database, **fields: Any) -> str:
    """Make a cluster on which one job runs; return its id."""
    cluster_id = make_fifo(database, **fields)
    submit_rigid(database, cluster_id)
    step_at(database, cluster_id, 30.0)
    return cluster_id


def ask(database: Database, cluster_id: str, *, tenant: str = "tenant", **request: Any) -> str:
    """Store a question as the service does."""
    owner, tenant_id = make_owner(database, tenant=tenant)
    mine = {"owner_id": owner, "tenant_id": tenant_id}
    if "row" in request:
        request["tenant"] = tenant
    with database.session_scope() as session:
        operation = Operation(kind=what_if.KIND, total=18.0, **mine)
        session.add(operation)
        session.flush()
        asked = WhatIf(cluster_id=cluster_id, operation_id=operation.id, request=request, **mine)
        session.add(asked)
        session.flush()
        return asked.id


def answered(database: Database, forecast_id: str) -> tuple[Operation, Any]:
    with database.session_scope(writes=False) as session:
        asked = session.get_one(WhatIf, forecast_id)
        return session.get_one(Operation, asked.operation_id), asked.result
