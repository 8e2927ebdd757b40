"""Which configurations a job may have, and what it is believed to make of them."""

from __future__ import annotations

import numpy as np
import pytest
from scheduling.examples import belief, job, spec, type_belief

from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief
from maat.scheduling.bootstrap import ProjectByConstant, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import sia_configurations
from maat.scheduling.job import Job, MemoryLimits
from maat.scheduling.matrix import GoodputMatrix, feasible_pairs, goodput_matrix
from maat.scheduling.policies.sia import table_for
from maat.vocabulary import Adaptivity

CLUSTER = Cluster.parse("t4=2x4,a100=2x8")


def allowed(one: Job, *, scale_up: int = 64, gpu_type: str = "t4") -> list[int]:
    """GPU counts of a type that the job may have."""
    table = table_for(CLUSTER, [one])
    _, columns = feasible_pairs([one], table, np.array([scale_up]))
    return [
        c.gpu_count
        for c in (table.configurations[column] for column in columns)
        if c.gpu_type == gpu_type
    ]


def matrix_of(*jobs: Job, cluster: Cluster = CLUSTER) -> GoodputMatrix:
    return goodput_matrix(
        jobs,
        cluster,
        table_for(cluster, jobs),
        scale_up=np.full(len(jobs), 64),
        projection=project_by_profile,
    )


def dense(matrix: GoodputMatrix) -> FloatArray:
    """Goodput by job and configuration, (J, C); NaN if the job may not have it."""
    full = np.full((len(matrix.job_ids), len(matrix.table)), np.nan)
    full[matrix.pairs.job, matrix.pairs.column] = matrix.pairs.goodput
    return full


def at(matrix: GoodputMatrix, gpu_type: str, gpu_count: int) -> float:
    column = matrix.table.column(gpu_type, gpu_count)
    assert column is not None
    return float(dense(matrix)[0, column])


def test_an_elastic_job_is_offered_no_more_gpus_of_a_type_than_it_was_measured_on() -> None:
    known = job(spec(most_gpus_by_type={"t4": 4}))
    assert allowed(known) == [1, 2, 4]
    assert allowed(known, gpu_type="a100") == [1, 2, 4, 8, 16]
    assert allowed(job(spec(min_gpus=8, most_gpus_by_type={"t4": 4}))) == [8]


def test_a_fixed_batch_is_rounded_down_however_large_a_batch_may_be() -> None:
    fixed = {"adaptivity": Adaptivity.RIGID, "gpu_count": 3, "batch_size": 256}
    cluster = Cluster.parse("t4=1x4")

    def planned(most: int, **more: object) -> int:
        one = job(spec(**fixed, max_batch_size=most, **more), belief(t4=0.1))
        return int(matrix_of(one, cluster=cluster).pairs.plans.total_batch_size[0])

    assert planned(256) == 255
    assert planned(512) == 255
    assert planned(256, rounds_batch_up=True) == 258


def test_an_elastic_job_may_have_every_count_from_its_minimum_to_its_maximum() -> None:
    assert allowed(job()) == [1, 2, 4, 8]
    assert allowed(job(spec(min_gpus=2, max_gpus=5))) == [2, 4]


def test_scaling_up_is_limited_but_the_smallest_count_is_always_allowed() -> None:
    assert allowed(job(), scale_up=2) == [1, 2]
    assert allowed(job(), scale_up=0) == [1]
    assert allowed(job(spec(min_gpus=3)), scale_up=0) == [4]


def test_a_rigid_job_may_have_its_count_and_no_other() -> None:
    rigid = job(spec(adaptivity=Adaptivity.RIGID, gpu_count=3, batch_size=96))
    assert allowed(rigid, scale_up=0) == [3]
    assert allowed(rigid, gpu_type="a100") == [3]
    assert allowed(job(spec(adaptivity=Adaptivity.RIGID, gpu_count=9, batch_size=96))) == []


def test_a_count_that_a_rigid_job_asks_for_is_not_offered_to_an_elastic_one() -> None:
    rigid, elastic = (
        job(spec("r", adaptivity=Adaptivity.RIGID, gpu_count=3, batch_size=96)),
        job(spec("e")),
    )
    table = table_for(CLUSTER, [rigid, elastic])
    rows, columns = feasible_pairs([rigid, elastic], table, np.array([64, 64]))
    assert rows[columns == table.column("t4", 3)].tolist() == [0]


def test_a_hybrid_parallel_job_gets_whole_replicas_and_its_scale_up_counts_replicas() -> None:
    hybrid = job(spec(gpus_per_replica={"t4": 2, "a100": 4}))
    assert allowed(hybrid) == [2, 4, 8]
    assert allowed(hybrid, gpu_type="a100") == [4, 8, 16]
    assert allowed(hybrid, scale_up=1) == [2]
    assert allowed(hybrid, scale_up=2, gpu_type="a100") == [4, 8]


def test_a_job_may_use_only_types_that_hold_it_and_that_its_owner_allows() -> None:
    assert allowed(job(spec(gpu_types=("a100",)))) == []
    assert allowed(job(spec(memory={"a100": MemoryLimits(1, 8)}))) == []


def test_nothing_is_known_of_a_job_that_never_ran() -> None:
    matrix = matrix_of(job())
    assert not matrix.pairs.known.any()
    assert (matrix.pairs.goodput == 0).all()


def test_no_jobs_make_an_empty_matrix() -> None:
    assert dense(matrix_of()).shape == (0, len(sia_configurations(CLUSTER)))


def test_a_row_does_not_depend_on_the_other_rows() -> None:
    first, second = (
        job(spec("a"), belief(t4=0.1, a100=0.02)),
        job(spec("b", initial_batch_size=64), belief(t4=0.4)),
    )
    both = dense(matrix_of(first, second))
    assert both[0] == pytest.approx(dense(matrix_of(first))[0], nan_ok=True)
    assert both[1] == pytest.approx(dense(matrix_of(second))[0], nan_ok=True)


def test_a_batch_that_no_configuration_holds_has_no_goodput() -> None:
    tight = job(spec(memory={"t4": MemoryLimits(64, 64)}, max_batch_size=128), belief(t4=0.1))
    matrix = matrix_of(tight)
    assert at(matrix, "t4", 2) > 0
    assert at(matrix, "t4", 4) == 0.0


def test_a_type_measured_on_one_gpu_borrows_the_scaling_of_the_type_that_scaled_furthest() -> None:
    known = Belief({"t4": type_belief(0.4, replicas=(1, 2, 4)), "a100": type_belief(0.1)}, None, 4)
    lender, factor = project_by_profile(job(known=known), "a100", CLUSTER.type_names) or ("", 0.0)
    assert lender == "t4"
    assert factor == pytest.approx((0.4 + 0.256) / (0.1 + 0.256)), (
        "xput_A(1) / xput_B(1) at the largest batch that both hold"
    )

    matrix = matrix_of(job(known=known))
    assert at(matrix, "a100", 4) == pytest.approx(factor * at(matrix, "t4", 4))


def test_a_type_with_its_own_scaling_uses_it() -> None:
    known = belief(t4=0.4, a100=0.1)
    assert project_by_profile(job(known=known), "a100", CLUSTER.type_names) == ("a100", 1.0)


def test_types_measured_on_one_gpu_only_scale_perfectly_each_by_itself() -> None:
    known = Belief({"t4": type_belief(0.4), "a100": type_belief(0.1)}, None, 1)
    assert project_by_profile(job(known=known), "a100", CLUSTER.type_names) == ("a100", 1.0)


def test_of_a_job_that_ran_nowhere_nothing_is_projected() -> None:
    assert project_by_profile(job(), "t4", CLUSTER.type_names) is None


def test_the_published_rule_takes_the_first_type_that_ran_times_a_constant() -> None:
    rule = ProjectByConstant({"m": {"t4": 100.0, "a100": 800.0, "rtx": 250.0}})
    known = Belief({"rtx": type_belief(0.2), "a100": type_belief(0.1)}, None, 1)
    assert rule(job(known=known), "t4", ("t4", "rtx", "a100")) == ("a100", 0.125), (
        "the first that was profiled, however the cluster is written"
    )
    assert rule(job(known=known), "t4", ("t4", "rtx")) == ("rtx", 0.4), (
        "of the types that the cluster has"
    )
    assert rule(job(known=known), "a100", ("t4", "rtx", "a100")) == ("a100", 1.0)
    assert rule(job(), "t4", ("t4", "rtx", "a100")) is None


def test_gpus_beyond_the_largest_batch_are_offered_at_their_smallest_batches_only_on_request() -> (
    None
):
    wide = job(spec(max_batch_size=64, memory={"a100": MemoryLimits(8, 256)}), belief(a100=0.05))
    table = table_for(CLUSTER, [wide])

    def goodput(*, beyond: bool) -> list[bool]:
        matrix = goodput_matrix(
            [wide],
            CLUSTER,
            table,
            scale_up=np.array([64]),
            projection=project_by_profile,
            beyond_largest_batch=beyond,
        )
        plans = matrix.pairs.plans
        assert not beyond or plans.total_batch_size[matrix.pairs.gpu_count == 16].tolist() == [128]
        return (plans.goodput[matrix.pairs.gpu_type == 1] > 0).tolist()

    assert goodput(beyond=False) == [True, True, True, True, False], (
        "1, 2, 4, 8 and 16 GPUs; 16 of them cannot run fewer than 128 samples"
    )
    assert goodput(beyond=True) == [True] * 5
