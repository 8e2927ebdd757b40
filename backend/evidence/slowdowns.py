"""What jobs on one GPU were measured to cost each other, as the API shows it. Commits nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.attempts.models import SharingSample
from backend.attempts.slowdowns import LEAST_REPORTS, known_models, measured_slowdowns, pair_of
from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.evidence.reporters import may_name, reporters
from backend.reservations.repository import tenant_names
from backend.sight import OTHER_MODEL
from maat.api.evidence import SlowdownOut
from maat.scheduling.evidence import Evidence, ModelKey, pooled, weight_of


def slowdowns(session: Session, principal: Principal, cluster_id: str) -> list[SlowdownOut]:
    """Return the measured pairs, by their models, batches and GPUs."""
    cluster = get_cluster(session, cluster_id)
    measured = measured_slowdowns(session, cluster)
    of_pair: dict[tuple[ModelKey, ModelKey, int, int, str, int], list[SharingSample]]
    of_pair = defaultdict(list)
    tenants = set[str]()
    for each in measured.samples:
        victim, partner = pair_of(each, measured.shared)
        batches = each.victim_batch, each.partner_batch
        of_pair[victim, partner, *batches, each.gpu_type, each.gpu_count].append(each)
        tenants |= {each.tenant_id, each.partner_tenant_id}
    models = known_models(session, principal, cluster.id)
    names = _Names(principal, tenant_names(session, list(tenants)), models)
    return [
        _shown(key[:2], rows, names, cluster, now=measured.now) for key, rows in of_pair.items()
    ]


@dataclass(frozen=True)
class _Names:
    """Which names the caller may know: `tenants` by id; `models` of its jobs, None for all."""

    principal: Principal
    tenants: Mapping[str, str]
    models: set[str] | None

    def model(self, key: ModelKey) -> tuple[str, str | None]:
        """Return a model's name and its tenant's, as far as the caller may know them."""
        tenant, model = key
        if tenant:
            may_see = may_name(self.principal, tenant)
            return (model, self.tenants[tenant]) if may_see else (OTHER_MODEL, None)
        return (model if self.models is None or model in self.models else OTHER_MODEL, None)


def _shown(
    pair: tuple[ModelKey, ModelKey],
    rows: Sequence[SharingSample],
    names: _Names,
    cluster: Cluster,
    *,
    now: float,
) -> SlowdownOut:
    (victim, victim_tenant), (partner, partner_tenant) = map(names.model, pair)
    found = pooled(
        Evidence(each.tenant_id, each.ratio, weight_of(each.count, now - each.updated_seconds))
        for each in rows
    )
    reports = sum(each.count for each in rows)
    return SlowdownOut(
        victim=victim,
        victim_tenant=victim_tenant,
        victim_batch=rows[0].victim_batch,
        partner=partner,
        partner_tenant=partner_tenant,
        partner_batch=rows[0].partner_batch,
        gpu_type=rows[0].gpu_type,
        gpu_count=rows[0].gpu_count,
        slowdown=found.ratio,
        spread=spread_of(rows),
        weight=found.weight,
        jobs=len(rows),
        reports=reports,
        is_used=reports >= LEAST_REPORTS,
        reported_by=reporters(names.principal, [each.tenant_id for each in rows], names.tenants),
        updated_at=shown_at(cluster, max(each.updated_seconds for each in rows)),
    )


def spread_of(rows: Sequence[SharingSample]) -> float:
    """Return the standard deviation of all reports of these rows, by their weights.

    Of equal ones the sum of squares may be below zero by rounding.
    """
    total = sum(each.weight for each in rows)
    if not total:
        return 0.0
    mean = sum(each.ratio * each.weight for each in rows) / total
    squares = sum(each.ratio_m2 + each.weight * (each.ratio - mean) ** 2 for each in rows)
    return math.sqrt(max(squares, 0.0) / total)
