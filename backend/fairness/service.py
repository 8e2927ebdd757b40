"""rho by tenant over a period, and the tenants' shares over time. Reads only.

A principal that does not see all tenants gets its own, and all others together.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.fairness.distribution import ERROR, Distribution
from backend.fairness.ended_days import Counted
from backend.fairness.ended_reading import EndedJobs
from backend.fairness.formula import BASELINE, RULE, TEXT, VERSION
from backend.fairness.repository import tenant_names
from backend.fairness.resources import state_of
from backend.fairness.words import without_rho
from backend.moments import moment_of
from maat.api.fairness import (
    MOST_POINTS,
    FairnessOut,
    FairnessProgressOut,
    FormulaOut,
    ReasonCountOut,
    TenantRhoOut,
)
from maat.vocabulary import FairnessState, WithoutRho


def fairness(
    ended: EndedJobs, principal: Principal, *, points: int = MOST_POINTS, most: int | None = None
) -> FairnessOut:
    """Return rho of the jobs that ended in a period, by tenant.

    How far rho is, and why jobs have none, is told of the jobs that the principal may see.
    `points`: most of a distribution. `most`: tenants with a row of their own; None: all.
    """
    session = ended.session
    counts = ended.counts(of=None if principal.sees_all_tenants else principal.tenant_id)
    tenants, together = _by_tenant(session, principal, ended.rho, points=points, most=most)
    return FairnessOut(
        cluster_id=ended.cluster.id,
        period=ended.period.show(now_of(session, ended.cluster)),
        formula=FormulaOut(rule=RULE, version=VERSION, text=TEXT, baseline=BASELINE),
        quantile_error=0.0 if ended.is_exact else ERROR,
        all=Distribution.merged(ended.rho.values()).figures,
        tenants=tenants,
        tenants_together=together,
        progress=_progress(counts),
        without_rho=_without(counts),
        older_versions=_older(counts),
    )


def now_of(session: Session, cluster: Cluster) -> datetime:
    """Return the cluster's present date."""
    return cluster.epoch + timedelta(seconds=cluster_seconds(cluster, moment_of(session)))


def _by_tenant(
    session: Session,
    principal: Principal,
    found: Mapping[str, Distribution],
    *,
    points: int,
    most: int | None,
) -> tuple[list[TenantRhoOut], int]:
    """Return own tenants by name, then all others together; and how many of these are one's own."""
    names = tenant_names(session, [one for one in found if principal.may_see(one)])
    largest = sorted(names, key=lambda one: (-found[one].jobs, names[one]))
    alone = set(largest[:most])
    own = sorted((names[tenant_id], tenant_id) for tenant_id in alone)
    shown = [found[tenant_id].shown(name, points) for name, tenant_id in own]
    others = Distribution.merged(some for one, some in found.items() if one not in alone)
    rows = [*shown, others.shown(None, points)] if others.jobs else shown
    return rows, len(names) - len(alone)


def _progress(counts: Mapping[Counted, int]) -> FairnessProgressOut:
    by_state = dict.fromkeys(FairnessState, 0)
    for (state, reason, _), count in counts.items():
        by_state[state_of(state, reason)] += count
    return FairnessProgressOut(total=sum(by_state.values()), by_state=by_state)


def _older(counts: Mapping[Counted, int]) -> int:
    """Count the jobs whose rho follows an older version of the formula."""
    return sum(
        count
        for (_, reason, version), count in counts.items()
        if reason is None and version is not None and version < VERSION
    )


def _without(counts: Mapping[Counted, int]) -> list[ReasonCountOut]:
    jobs: dict[WithoutRho, int] = {}
    for (_, reason, _), count in counts.items():
        if reason is not None:
            jobs[WithoutRho(reason)] = jobs.get(WithoutRho(reason), 0) + count
    return [
        ReasonCountOut(reason=reason, sentence=without_rho(reason), jobs=count)
        for reason, count in sorted(jobs.items(), key=lambda one: (-one[1], one[0]))
    ]
