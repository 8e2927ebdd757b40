"""What jobs reported of their models on a cluster: of how many, by whom, and how it is reset.

Commits nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.tenants import find_tenant
from backend.attempts.models import ForgottenPast, GradientSample, JobFit, JobMemory, StepSample
from backend.attempts.shared_models import shared_models
from backend.audit.changes import Change, asker, record
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.evidence.reporters import may_name, reporters
from backend.jobs.models import Job
from backend.moments import moment_of
from backend.reservations.repository import tenant_names
from maat.api.evidence import Measured, ModelEvidenceOut
from maat.scheduling.evidence import ModelKey
from maat.vocabulary import JobState

_TABLES: Mapping[Measured, tuple[Any, ...]] = {
    Measured.BELIEFS: (StepSample, JobFit, JobMemory),
    Measured.GRADIENTS: (GradientSample,),
}
Own = tuple[str, str]
"""The id of a tenant, and its name of a model."""


def model_evidence(
    session: Session, principal: Principal, cluster_id: str
) -> list[ModelEvidenceOut]:
    """Return what was reported of the models that the caller may know, by name."""
    cluster = get_cluster(session, cluster_id)
    counted = {what: dict(_counted(session, cluster, what)) for what in Measured}
    known: set[Own] = set().union(*counted.values())
    shared = shared_models(session, cluster)
    by_model: dict[ModelKey, list[Own]] = defaultdict(list)
    for tenant, model in sorted(known):
        by_model[shared.key(tenant, model)].append((tenant, model))
    names = tenant_names(session, [tenant for tenant, _ in known])
    return [
        ModelEvidenceOut(
            model=key[1],
            tenant=names[key[0]] if key[0] else None,
            beliefs=sum(counted[Measured.BELIEFS].get(one, 0) for one in own),
            gradients=sum(counted[Measured.GRADIENTS].get(one, 0) for one in own),
            history=sum(counted[Measured.HISTORY].get(one, 0) for one in own),
            reported_by=reporters(principal, [tenant for tenant, _ in own], names),
        )
        for key, own in sorted(by_model.items(), key=lambda item: item[0][::-1])
        if any(may_name(principal, tenant) for tenant, _ in own)
    ]


def reset_evidence(
    session: Session,
    principal: Principal,
    cluster_id: str,
    what: Measured,
    *,
    model: str | None,
    tenant: str | None,
) -> None:
    """Forget what jobs reported of all models, of one, or of a tenant's. Raises NotFound."""
    cluster = get_cluster(session, cluster_id)
    whose = None if tenant is None else find_tenant(session, principal, tenant).id
    conditions = [col(Job.cluster_id) == cluster.id]
    conditions += [] if model is None else [col(Job.model) == model]
    conditions += [] if whose is None else [col(Job.tenant_id) == whose]
    if what is Measured.HISTORY:
        gone = _forget_past(session, cluster, model=model, whose=whose)
    else:
        jobs = sa.select(col(Job.id)).where(*conditions)
        gone = sum(
            session.connection().execute(sa.delete(table).where(table.job_id.in_(jobs))).rowcount
            for table in _TABLES[what]
        )
    before = {"cluster": cluster.name, "model": model, "tenant": tenant, "rows": gone}
    change = Change(
        asker(), f"reset {what.value}", cluster.id, before, {**before, "rows": 0}, whose
    )
    record(session, change)


def _forget_past(
    session: Session, cluster: Cluster, *, model: str | None, whose: str | None
) -> int:
    """Let forecasts forget the jobs that have ended by now; return how many those are."""
    now, gone = cluster_seconds(cluster, moment_of(session)), 0
    for (tenant_id, name), count in _counted(session, cluster, Measured.HISTORY):
        if whose in (None, tenant_id) and model in (None, name):
            row = ForgottenPast(
                cluster_id=cluster.id, tenant_id=tenant_id, model=name, until_seconds=now
            )
            session.merge(row)
            gone += count
    return gone


def _counted(session: Session, cluster: Cluster, what: Measured) -> Iterator[tuple[Own, int]]:
    """Yield of how many jobs of each tenant's model there is what."""
    own = (col(Job.tenant_id), col(Job.model))
    if what is Measured.HISTORY:
        statement = (
            sa.select(*own, sa.func.count())
            .outerjoin(
                ForgottenPast,
                sa.and_(
                    col(ForgottenPast.cluster_id) == col(Job.cluster_id),
                    col(ForgottenPast.tenant_id) == col(Job.tenant_id),
                    col(ForgottenPast.model) == col(Job.model),
                ),
            )
            .where(
                col(Job.state) == JobState.SUCCEEDED.value,
                col(Job.finished_seconds)
                > sa.func.coalesce(col(ForgottenPast.until_seconds), -1.0),
            )
        )
    else:
        table = _TABLES[what][0]
        statement = sa.select(*own, sa.func.count(sa.distinct(table.job_id))).join(
            table, table.job_id == col(Job.id)
        )
    statement = statement.where(col(Job.cluster_id) == cluster.id).group_by(*own)
    for tenant_id, model, count in session.connection().execute(statement):
        yield (tenant_id, model), int(count)


def forgotten_until(session: Session, cluster_id: str) -> Mapping[Own, float]:
    """Return until when forecasts forget how jobs of a tenant's model ended."""
    rows = session.exec(select(ForgottenPast).where(ForgottenPast.cluster_id == cluster_id))
    return {(row.tenant_id, row.model): row.until_seconds for row in rows}
