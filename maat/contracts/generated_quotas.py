"""Hypothesis strategies for rounds with quotas, weights and priority classes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from maat.contracts.generated import NOW, TENANTS, round_inputs
from maat.contracts.small_rounds import rigid_job, round_of
from maat.scheduling.cluster import Cluster
from maat.scheduling.limits import LimitKind
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.rounds import PolicyState, RoundInput


@st.composite
def tenant_quotas(draw: DrawFn, type_names: tuple[str, ...]) -> tuple[TenantQuota, ...]:
    """Of some tenants, also ones below what they hold or above what there is."""
    found = []
    for tenant in draw(st.lists(st.sampled_from(TENANTS), unique=True)):
        ceiling = draw(st.dictionaries(st.sampled_from(type_names), st.integers(0, 10)))
        guaranteed = draw(st.dictionaries(st.sampled_from(type_names), st.integers(0, 10)))
        within = {name: min(n, ceiling.get(name, n)) for name, n in guaranteed.items()}
        weight = draw(st.sampled_from((0.5, 1.0, 3.0)))
        found.append(TenantQuota(tenant=tenant, weight=weight, guaranteed=within, ceiling=ceiling))
    return tuple(found)


@st.composite
def quota_rounds(draw: DrawFn, *, classes: bool = True) -> RoundInput:
    """A round of any kind whose tenants have quotas, or whose jobs have classes, or both.

    `classes` False: all jobs are of one class.
    """
    drawn = draw(round_inputs())
    priorities = st.sampled_from((-3, 0, 0, 5, 10, 25)) if classes else st.just(0)
    jobs = tuple(
        replace(job, spec=replace(job.spec, priority=draw(priorities))) for job in drawn.jobs
    )
    limits = tuple(limit for limit in drawn.limits if limit.kind is not LimitKind.QUOTA)
    owed = {tenant: draw(st.sampled_from((0.0, -1e4, 1e4))) for tenant in TENANTS}
    shares = {"at": drawn.now, "seconds": owed, "due": {}, "got": {}}
    return replace(
        drawn,
        jobs=jobs,
        limits=limits,
        quotas=draw(tenant_quotas(drawn.cluster.type_names)),
        state=PolicyState(shares=shares),
    )


@st.composite
def crowded_rounds(draw: DrawFn) -> RoundInput:
    """Eight GPUs of one type, and jobs of several classes that want at least twice as many."""
    cluster = Cluster.parse("t4=2x4")
    sizes = draw(st.lists(st.sampled_from((1, 1, 2, 3, 4)), min_size=8, max_size=12))
    jobs = []
    for number, gpus in enumerate(sizes):
        jobs.append(
            rigid_job(
                f"job-{number}",
                gpus,
                step_seconds=draw(st.sampled_from((0.05, 0.1, 0.4))),
                tenant=draw(st.sampled_from(TENANTS)),
                priority=draw(st.sampled_from((-3, 0, 10, 25))),
                submitted_at=draw(st.floats(0.0, NOW)),
            )
        )
    return round_of(cluster, jobs, now=NOW)
