"""One of three tenants reports what it likes: what the others get, and what is believed of them.

All three share a model, which is the worst case: else nothing of one is read for another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from scheduling.examples import job, round_of, spec

from backend.attempts.slowdowns import MeasuredSlowdowns
from backend.models import GradientSample, SharingSample, StepSample
from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.evidence import SharedModels, faults_of_steps
from maat.scheduling.interference import SharingJob
from maat.scheduling.job import MemoryLimits
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from worker.training.knowledge import Knowledge
from worker.training.tables import TrainingTables

HONEST, LIAR, MODEL = ("b", "c"), "liar", "m"
CLUSTER = Cluster.parse("t4=2x4")
MOST_GPUS = 4  # of the liar's job, as it declares
SHARED = SharedModels({MODEL})
NOW = 1000.0


class Lies(NamedTuple):
    """What the liar reports: steps (replicas, batch, s), gradients (square, variance), pairs."""

    steps: list[tuple[int, int, float]]
    gradients: list[tuple[float, float]]
    slowdowns: list[tuple[float, int]]


lies_of_any_kind = st.builds(
    Lies,
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from((16, 32, 64)), st.floats(1e-12, 1e5)),
        max_size=6,
        unique_by=lambda one: one[:2],
    ),
    st.lists(st.tuples(st.floats(0.0, 1e30), st.floats(0.0, 1e30)), max_size=6),
    st.lists(st.tuples(st.floats(0.5, 1000.0), st.integers(1, 100)), max_size=6),
)


def step(tenant: str, replicas: int, batch: int, seconds: float) -> StepSample:
    return StepSample(
        job_id=tenant, gpu_type="t4", node_count=1, replica_count=replicas,
        per_gpu_batch_size=batch, accumulation_steps=0, count=100, step_mean=seconds, step_m2=0.0,
        sync_mean=0.0, believed_step=seconds, believed_sync=0.0, believed_weight=1.0,
        first_seconds=0.0, last_seconds=NOW,
    )  # fmt: skip


def beliefs(lies: Lies | None) -> dict[str, Belief]:
    """Return what is believed of each tenant's job, with these lies or with an honest third."""
    honest = [(replicas, batch, 0.01 * batch) for replicas in (1, 2, 4) for batch in (16, 32)]
    steps = dict.fromkeys((*HONEST, LIAR), honest)
    gradients = {tenant: [(1.0, 10.0)] for tenant in (*HONEST, LIAR)}
    if lies is not None:
        steps[LIAR] = [
            one for one in lies.steps if not list(faults_of_steps(one[2], 100, lived_seconds=None))
        ]
        gradients[LIAR] = lies.gradients
    tables = TrainingTables(
        commands={},
        attempts={},
        samples={tenant: [step(tenant, *one) for one in of] for tenant, of in steps.items()},
        gradients={
            tenant: [
                GradientSample(
                    job_id=tenant, at_seconds=NOW, square=square, variance=variance, steps=1,
                    batch_size=32, progress=0.0,
                )
                for square, variance in of
            ]
            for tenant, of in gradients.items()
        },
        fits={}, faults={}, scores=[], paused=False, memory={}, penalties={}, flags={},
        engine_fault=None, shared=SHARED,
    )  # fmt: skip
    known = Knowledge(CLUSTER)
    known.go_on(tables, {tenant: (tenant, MODEL) for tenant in (*HONEST, LIAR)})
    return {tenant: known.belief(tenant, now=NOW) for tenant in (*HONEST, LIAR)}


def gpus_of(known: dict[str, Belief], policy: str) -> dict[str, int]:
    """Return how many GPUs each tenant's job, which holds two, gets in a round."""
    declared = {"max_gpus": MOST_GPUS, "memory": {"t4": MemoryLimits(1, 64)}}
    jobs = [
        job(
            spec(tenant, tenant=tenant, **declared),
            replace(known[tenant], peak_replica_count=MOST_GPUS),
            held=(2 * number, 2 * number + 1),
        )
        for number, tenant in enumerate((LIAR, *HONEST))
    ]
    result = plan_round(round_of(CLUSTER, *jobs), POLICIES.build(policy), PLACERS.build("pal"))
    placed = result.placement.placement.by_job
    return {tenant: len(placed.get(tenant, ())) for tenant in known}


@examples(max_examples=25, deadline=None)
@given(lies=lies_of_any_kind)
def test_lies_of_one_tenant_change_nothing_that_is_believed_of_the_others(lies: Lies) -> None:
    without, beside = beliefs(None), beliefs(lies)
    for tenant in HONEST:
        assert beside[tenant].by_type["t4"].samples == without[tenant].by_type["t4"].samples
        assert beside[tenant].gradient == without[tenant].gradient


@examples(max_examples=15, deadline=None)
@given(lies=lies_of_any_kind)
def test_lies_of_one_tenant_take_no_more_gpus_than_one_honest_job_could(lies: Lies) -> None:
    """An honest job of the same declaration could get MOST_GPUS: the others share what is left."""
    given_gpus = gpus_of(beliefs(lies), "sia")
    others = [given_gpus[tenant] for tenant in HONEST]
    assert given_gpus[LIAR] <= MOST_GPUS
    assert min(others) >= 1
    assert sum(others) >= CLUSTER.gpu_count - MOST_GPUS
    alone = gpus_of(beliefs(None), "fifo")
    assert gpus_of(beliefs(lies), "fifo") == alone, "whose counts are asked for, not believed"


@examples(max_examples=50, deadline=None)
@given(lies=lies_of_any_kind, honest=st.tuples(st.floats(1.0, 3.0), st.floats(1.0, 3.0)))
def test_lies_of_one_tenant_keep_slowdowns_within_what_the_others_measured(
    lies: Lies, honest: tuple[float, float]
) -> None:
    rows = [
        pair(tenant, number, ratio, count)
        for tenant, of in (
            *((tenant, [(one, 9)]) for tenant, one in zip(HONEST, honest, strict=True)),
            (LIAR, lies.slowdowns),
        )
        for number, (ratio, count) in enumerate(of)
    ]
    known = MeasuredSlowdowns(rows, SHARED, NOW)
    for tenant in (*HONEST, LIAR):
        found = known.of_jobs(SharingJob(MODEL, 32, tenant), SharingJob(MODEL, 32, tenant), 1)
        assert found is not None
        assert min(honest) * (1 - 1e-9) <= found <= max(honest) * (1 + 1e-9)
    apart = replace(known, shared=SharedModels())
    mine = apart.of_jobs(SharingJob(MODEL, 32, "b"), SharingJob(MODEL, 32, "b"), 1)
    assert mine is not None
    assert abs(mine - honest[0]) < 1e-9


def pair(tenant: str, number: int, ratio: float, count: int) -> SharingSample:
    return SharingSample(
        job_id=f"{tenant}-{number}", cluster_id="", tenant_id=tenant, victim=MODEL,
        victim_batch=32, partner_tenant_id=tenant, partner=MODEL, partner_batch=32, gpu_type="t4",
        gpu_count=1, count=count, weight=1.0, ratio=ratio, ratio_m2=0.0, updated_seconds=NOW,
    )  # fmt: skip
