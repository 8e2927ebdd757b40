"""Simulations under quotas: shares by weight over hours, and rounds that are skipped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError
from maat.scheduling.quotas import TenantQuota
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob, Workload

HOUR = 3600.0
WEIGHTS = {"blue": 1.0, "green": 2.0, "red": 2.0}
BY_WEIGHT = tuple(TenantQuota(tenant=name, weight=weight) for name, weight in WEIGHTS.items())


def endless(policy: str, *, gpus: str, jobs: int, each: int | None, rounds: int = 240) -> Scenario:
    """Long jobs of three tenants, each of which could use the whole cluster.

    `each`: the GPUs of each job; None leaves them to the policy.
    """
    trace = tuple(
        TraceJob(
            name=f"{tenant}-{i}",
            submit_seconds=0.0,
            model="bert",
            gpu_count=each or 1,
            max_gpus=each,
            batch_size=None if each is None else 24 * each,
            adaptivity=Adaptivity.ADAPTIVE if each is None else Adaptivity.RIGID,
            work_scale=50.0,
            tenant=tenant,
        )
        for tenant in WEIGHTS
        for i in range(jobs)
    )
    return Scenario(
        workload=Workload("endless", trace, "sia"),
        models=catalog_models(),
        cluster=Cluster.parse(gpus),
        policy=policy,
        placer="whole-node" if policy == "sia" else "packed-sticky",
        conditions=Conditions(quotas=BY_WEIGHT, round_seconds=120.0),
        max_rounds=rounds,
    )


def gpu_seconds(result: SimulationResult) -> Counter[str]:
    """By tenant."""
    tenant = {job.name: job.tenant for job in result.scenario.workload.jobs}
    held: Counter[str] = Counter()
    for record in result.records:
        held[tenant[record.name]] += int(sum(record.gpu_seconds.values()))
    return held


@pytest.mark.parametrize("policy", ["sia", "las", "fifo"])
def test_over_eight_hours_shares_are_within_3_percent_of_the_weights(policy: str) -> None:
    """Seven GPUs by 1:2:2 are 1.4, 2.8 and 2.8: no round can give that, eight hours can."""
    held = gpu_seconds(simulate(endless(policy, gpus="a100=1x7", jobs=8, each=1)))
    for tenant, weight in WEIGHTS.items():
        assert held[tenant] / held.total() == pytest.approx(weight / 5.0, rel=0.03)


def test_jobs_whose_counts_sia_chooses_hold_shares_on_several_gpu_types() -> None:
    """A job has GPUs of one type, and doubles: 20 by 1:2:2 are no sums of such steps by type."""
    held = gpu_seconds(simulate(endless("sia", gpus="t4=2x4,a100=3x4", jobs=2, each=None)))
    for tenant, weight in WEIGHTS.items():
        assert held[tenant] / held.total() == pytest.approx(weight / 5.0, rel=0.03)


def test_rounds_under_quotas_are_skipped_only_where_nothing_would_change() -> None:
    """While tenants contend, what they are owed changes with time; alone, one may be skipped."""
    contended = endless("fifo", gpus="a100=1x3", jobs=2, each=1, rounds=90)
    alone = replace(
        contended,
        workload=replace(contended.workload, jobs=contended.workload.jobs[:2]),
    )
    for scenario in (contended, alone):
        fast, slow = simulate(scenario), simulate(scenario, every_round=True)
        assert fast.records == slow.records
        assert fast.spans == slow.spans


def test_a_quota_for_a_type_that_the_cluster_lacks_is_refused() -> None:
    scenario = endless("fifo", gpus="a100=1x1", jobs=1, each=1)
    wrong = (TenantQuota(tenant="blue", ceiling={"h100": 1}),)
    with pytest.raises(ClusterError, match="is no GPU type of this cluster"):
        simulate(replace(scenario, conditions=replace(scenario.conditions, quotas=wrong)))
