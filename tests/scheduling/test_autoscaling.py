"""When and how many nodes are added.

By goodput while a larger batch pays, by throughput at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scheduling.examples import job, spec, type_belief

from maat.scheduling.autoscaling import (
    PUBLISHED_RULE,
    FastBatch,
    GoodputAutoscaler,
    Ideal,
    ScalingInput,
    ThroughputAutoscaler,
    goodput_on,
    largest_batch_per_gpu,
    most_throughput_on,
    share_of_ideal,
    throughput_held_on,
)
from maat.scheduling.belief import Belief, GradientStatistics
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ParameterError
from maat.scheduling.job import Job


def noisy(variance: float) -> Job:
    """A job of 32 samples a batch at first.

    Larger variance makes larger batches more valuable.
    """
    known = Belief(
        {"t4": type_belief(0.05, replicas=(1, 2))}, GradientStatistics(1.0, variance), 64
    )
    return job(spec("job", max_batch_size=65536), known)


def scaling(*jobs: Job, nodes: int = 1, cluster: str = "t4=16x4") -> ScalingInput:
    return ScalingInput(jobs, Cluster.parse(cluster), nodes)


def test_goodput_adds_no_nodes_while_larger_batches_are_worth_little() -> None:
    assert GoodputAutoscaler().node_count(scaling(noisy(0.5))) == 1


def test_goodput_adds_more_nodes_the_more_a_larger_batch_is_worth() -> None:
    wanted = [
        GoodputAutoscaler().node_count(scaling(noisy(variance)))
        for variance in (1.0, 30.0, 100.0, 1000.0)
    ]
    assert wanted == sorted(wanted)
    assert wanted[0] == 1
    assert wanted[-1] == 16


def test_throughput_does_not_care_what_a_sample_is_worth() -> None:
    assert (
        ThroughputAutoscaler().node_count(scaling(noisy(0.5)))
        == ThroughputAutoscaler().node_count(scaling(noisy(1e6)))
        == 16
    )


def test_nodes_are_added_to_where_the_share_of_the_ideal_is_nearest_to_the_lower_limit() -> None:
    given = scaling(noisy(100.0))
    share = share_of_ideal(given, goodput_on)
    assert share[0] > 2 / 3
    wanted = GoodputAutoscaler(lower=0.6).node_count(given)
    assert abs(share[wanted - 1] - 0.6) == np.abs(share - 0.6).min()
    assert GoodputAutoscaler(lower=0.3).node_count(given) > wanted


def test_no_node_is_given_back() -> None:
    assert GoodputAutoscaler().node_count(scaling(noisy(0.0), nodes=9)) == 9


def test_a_share_is_averaged_over_the_window_before_nodes_are_added() -> None:
    steep = replace(scaling(noisy(1000.0)), recent_shares=(0.9,) * 14)
    rule = GoodputAutoscaler(window=15)
    assert rule.node_count(steep) == 1
    assert rule.node_count(replace(steep, recent_shares=(0.9,) * 15)) == 16
    high_once = (0.5,) * 14 + (0.9,)
    assert rule.node_count(replace(steep, recent_shares=high_once)) == 1, "0.527 on average"
    assert rule.node_count(replace(steep, recent_shares=(0.0, *(0.7,) * 15))) == 16, "the last 15"


def test_nodes_are_given_back_to_where_the_share_is_nearest_to_the_lower_limit() -> None:
    """Without noise a larger batch is worth nothing: on more nodes the share falls and falls."""
    quiet = scaling(noisy(1e-9), nodes=8, cluster="t4=16x1")
    shares = share_of_ideal(quiet, goodput_on)
    assert shares[[0, 1, 2, 7]].tolist() == pytest.approx([1.0, 0.58, 0.42, 0.19], abs=0.02)
    assert GoodputAutoscaler(give_back_below=0.35).node_count(quiet) == 2
    assert GoodputAutoscaler(give_back_below=0.05).node_count(quiet) == 8
    assert PUBLISHED_RULE.node_count(quiet) == 8, "not before fifteen decisions"
    assert PUBLISHED_RULE.node_count(replace(quiet, recent_shares=(0.1,) * 15)) == 2


def test_one_gpu_is_its_own_ideal_and_several_are_never_more() -> None:
    for speed in (goodput_on, throughput_held_on, most_throughput_on):
        share = share_of_ideal(scaling(noisy(100.0), cluster="t4=16x1"), speed)
        assert share[0] == pytest.approx(1.0)
        assert (share <= 1.0 + 1e-9).all()


def test_one_node_may_be_the_ideal_of_which_it_is_then_all() -> None:
    given = scaling(noisy(100.0))
    by_gpu, by_node = (share_of_ideal(given, goodput_on, ideal=ideal) for ideal in Ideal)
    assert by_node[0] == pytest.approx(1.0)
    assert by_node == pytest.approx(by_gpu / by_gpu[0])
    assert GoodputAutoscaler(ideal=Ideal.ONE_NODE).node_count(
        given
    ) > GoodputAutoscaler().node_count(given)


def test_the_batch_of_most_throughput_is_the_largest_however_few_gpus_hold_it() -> None:
    given, fast = scaling(noisy(1.0)), ThroughputAutoscaler(fast_batch=FastBatch.MOST_THROUGHPUT)
    held, most = (
        autoscaler.batch(given, noisy(1.0), gpu_count=8)
        for autoscaler in (ThroughputAutoscaler(), fast)
    )
    assert held is not None
    assert most is not None
    assert (held.total_batch_size, held.accumulation_steps) == (8 * 256, 0)
    assert most.total_batch_size == pytest.approx(65536, rel=0.01)
    assert most.accumulation_steps > 0
    assert fast.node_count(given) > 8
    assert fast.batch(given, job(spec()), gpu_count=8) is None, "of a job of which nothing is known"
    assert GoodputAutoscaler().batch(given, noisy(1.0), gpu_count=8) is None


def test_nothing_is_rented_for_a_job_of_which_nothing_is_known() -> None:
    for autoscaler in (GoodputAutoscaler(), ThroughputAutoscaler()):
        assert autoscaler.node_count(scaling(job(spec()))) == 1
        assert autoscaler.node_count(scaling()) == 1


def test_the_largest_batch_fits_memory_and_the_job() -> None:
    batches = largest_batch_per_gpu(job(spec(max_batch_size=1024)), "t4", np.array([1, 4, 8]))
    assert batches.tolist() == [256, 256, 128]


def test_nodes_that_are_not_alike_are_refused_by_name() -> None:
    with pytest.raises(ClusterError, match="not alike"):
        scaling(noisy(1.0), cluster="t4=1x4,a100=1x8")


@pytest.mark.parametrize("rule", [GoodputAutoscaler, ThroughputAutoscaler])
def test_an_upper_share_below_the_lower_is_refused_by_name(
    rule: type[GoodputAutoscaler] | type[ThroughputAutoscaler],
) -> None:
    assert rule(upper=0.5, lower=0.5).upper == 0.5
    with pytest.raises(ParameterError, match=r"upper: is below the lower share, 0.5 \(got 0.4\)"):
        rule(upper=0.4, lower=0.5)
