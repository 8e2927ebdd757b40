"""A GPU has whole samples: plans of a fixed batch are rounded down to them, by every policy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import POLICIES
from maat.vocabulary import Adaptivity

COUNTS = (1, 2, 3, 5, 6, 7)
BATCHES = (7, 33, 100, 101, 255, 1000)


@pytest.mark.parametrize("jobs_per_gpu", [1, 2])
@pytest.mark.parametrize("policy", sorted(POLICIES.names))
def test_no_policy_plans_more_samples_than_a_fixed_batch_has(
    policy: str, jobs_per_gpu: int
) -> None:
    plans = 0
    for count in COUNTS:
        for batch in (b for b in BATCHES if b >= count):
            fixed = {"gpu_count": count, "batch_size": batch, "initial_batch_size": min(batch, 16)}
            rigid = spec("a", adaptivity=Adaptivity.RIGID, max_batch_size=65536, **fixed)
            asked = [job(replace(rigid, id=name), belief(count, t4=0.5)) for name in "ab"]
            cluster = replace(Cluster.parse("t4=1x8"), jobs_per_gpu=jobs_per_gpu)
            round_input = round_of(cluster, *asked)
            grant = POLICIES.build(policy, {}).allocate(round_input).grants.get("a")
            if grant is None or grant.batch is None:
                continue
            plans += 1
            plan = grant.batch
            assert plan.total_batch_size <= batch
            assert plan.total_batch_size == count * plan.per_gpu_batch_size * (
                plan.accumulation_steps + 1
            )
    assert plans or POLICIES.build(policy, {}).chooses_gpu_counts
