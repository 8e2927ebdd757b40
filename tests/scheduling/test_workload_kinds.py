"""Tests of inference: batch inference counts samples, latency-bound inference keeps its SLO."""

from __future__ import annotations

import numpy as np
import pytest
from scheduling.examples import belief, job, round_of, spec
from simulation import small

from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.bootstrap import project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import JobError
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Allocation, JobSpec
from maat.scheduling.matrix import evaluate_pairs
from maat.scheduling.policies import POLICIES
from maat.simulation.simulated_job import SimulatedJob
from maat.vocabulary import WorkloadKind

CLUSTER = Cluster.parse("t4=2x4")


def goodput(declared: JobSpec) -> list[float]:
    """Of one, two and four t4 GPUs. A pass takes 0.1 + 0.001 m seconds, synchronisation 0.01."""
    counts = np.array([1, 2, 4])
    pairs = evaluate_pairs(
        (job(declared, belief(t4=0.1)),),
        CLUSTER,
        job=np.zeros(3, dtype=np.int64),
        gpu_type=np.zeros(3, dtype=np.int64),
        gpu_count=counts,
        node_count=np.ones(3, dtype=np.int64),
        column=np.zeros(3, dtype=np.int64),
        projection=project_by_profile,
    )
    return list(pairs.goodput.tolist())


def test_the_goodput_of_batch_inference_is_its_throughput() -> None:
    found = goodput(spec(workload_kind=WorkloadKind.BATCH_INFERENCE))
    assert found[0] == pytest.approx(256 / (0.1 + 0.256), rel=1e-6), (
        "a full memory, without accumulation"
    )
    assert found[2] == pytest.approx(4 * 256 / (0.1 + 0.256 + 0.01), rel=1e-6)
    training = goodput(spec())
    assert all(inference > effective for inference, effective in zip(found, training, strict=True))


@pytest.mark.parametrize(
    ("promised", "expected"),
    [(0.1, [0, 0, 0]), (0.175, [0, 0, 1]), (0.24, [0, 1, 1]), (0.31, [1, 1, 1])],
)
def test_latency_bound_inference_is_worth_one_where_its_promise_holds_and_nothing_elsewhere(
    promised: float, expected: list[float]
) -> None:
    """200 requests together take 0.3 s on one GPU, 0.21 s on two, 0.16 s on four."""
    declared = spec(
        workload_kind=WorkloadKind.LATENCY_INFERENCE, batch_size=200, promised_seconds=promised
    )
    assert goodput(declared) == expected


def test_sia_gives_latency_bound_inference_the_fewest_gpus_that_keep_its_promise() -> None:
    declared = spec(
        workload_kind=WorkloadKind.LATENCY_INFERENCE, batch_size=200, promised_seconds=0.24
    )
    decision = POLICIES.build("sia").allocate(round_of(CLUSTER, job(declared, belief(t4=0.1))))
    assert decision.grants["job"].gpu_count == 2


def test_sia_gives_a_new_latency_bound_job_at_once_what_keeps_its_promise() -> None:
    declared = spec(
        workload_kind=WorkloadKind.LATENCY_INFERENCE, batch_size=200, promised_seconds=0.175
    )
    decision = POLICIES.build("sia").allocate(
        round_of(CLUSTER, job(declared, belief(peak=1, t4=0.1)))
    )
    assert decision.grants["job"].gpu_count == 4, "growing towards it would break it until then"


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_promise_that_no_gpu_can_keep_gets_none_and_is_told_so(policy: str) -> None:
    declared = spec(
        workload_kind=WorkloadKind.LATENCY_INFERENCE, batch_size=200, promised_seconds=0.01
    )
    decision = POLICIES.build(policy).allocate(round_of(CLUSTER, job(declared, belief(t4=0.1))))
    assert dict(decision.grants) == {}
    assert decision.reasons["job"].primary is ReasonCode.NO_COMPATIBLE_GPU_TYPE
    assert decision.reasons["job"].evidence["promised_seconds"] == 0.01


@pytest.mark.parametrize(
    "changes",
    [
        {"workload_kind": WorkloadKind.LATENCY_INFERENCE, "batch_size": 8},
        {"promised_seconds": 1.0},
        {"workload_kind": WorkloadKind.LATENCY_INFERENCE, "batch_size": 8, "promised_seconds": 0.0},
        {"workload_kind": WorkloadKind.LATENCY_INFERENCE, "promised_seconds": 1.0},
    ],
)
def test_a_promise_without_a_latency_bound_job_or_the_other_way_round_is_refused(
    changes: dict[str, object],
) -> None:
    with pytest.raises(JobError, match=r"promised_seconds|batch_size"):
        spec(**changes)


def test_simulated_inference_loses_nothing_to_large_batches() -> None:
    model = small.truth(noise_scale=0.0, work=1e6)
    rates = {}
    for kind in (WorkloadKind.TRAINING, WorkloadKind.BATCH_INFERENCE):
        one = SimulatedJob(
            small.spec(workload_kind=kind), model, 0.0, model.epoch_ends, model.max_batch_size
        )
        one.hold(Allocation("t4", (0, 1, 2, 3)), (4,), None, restarts=False, now=0.0)
        for second in range(5):
            one.advance(
                float(second), second + 1.0, fitter=MemoisingFitter(), whole_second_epochs=False
            )
        rates[kind] = one.goodput
    assert rates[WorkloadKind.TRAINING] == pytest.approx(10.0)
    assert rates[WorkloadKind.BATCH_INFERENCE] == pytest.approx(120.0)
