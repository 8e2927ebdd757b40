"""Pollux: rounds computed by hand, on one type and on mixed clusters."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.explain import ReasonCode
from maat.scheduling.fitting import ACROSS_OVER_WITHIN, Sample, fit_throughput
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.pollux.memory import MOST_STATE_NUMBERS
from maat.scheduling.policies.pollux.policy import Pollux, in_priority
from maat.scheduling.policies.pollux.virtual_nodes import virtual_nodes
from maat.scheduling.rounds import Decision, RoundInput
from maat.vocabulary import Adaptivity, WorkloadKind


def decide(round_input: RoundInput, **parameters: object) -> Decision:
    return POLICIES.build("pollux", parameters).allocate(round_input)


def grown(name: str, *, peak: int = 64, held: tuple[int, ...] = (), **changes: object) -> Job:
    """A job that scales well on t4, and has had `peak` GPUs."""
    noisy = replace(belief(peak, t4=0.5), gradient=GradientStatistics(1.0, 1e4))
    return job(
        spec(name, **{"max_batch_size": 65536, **changes}),
        noisy,
        held=held,
        started_at=0.0 if held else None,
    )


def test_a_job_that_never_ran_gets_one_gpu_and_a_known_one_at_most_twice_its_peak() -> None:
    decision = decide(round_of("t4=4x4", job(spec("new"), Belief()), grown("known", peak=3)))
    assert decision.grants["new"].gpu_count == 1
    assert decision.grants["known"].gpu_count == 6
    assert (
        decide(round_of("t4=4x4", grown("known", peak=3)), scale_up_factor=3.0)
        .grants["known"]
        .gpu_count
        == 9
    )


def seen(*samples: Sample, peak: int, across_over_within: float = ACROSS_OVER_WITHIN) -> Job:
    """A job of which just these step times are known, and that has had `peak` GPUs."""
    known = TypeBelief(samples, fit_throughput(samples, across_over_within=across_over_within))
    return job(
        spec("a", max_batch_size=256), Belief({"t4": known}, GradientStatistics(1.0, 1e4), peak)
    )


def test_who_has_run_on_one_gpu_alone_is_given_two_to_find_out_and_gives_up_what_did_not_pay() -> (
    None
):
    alone = [Sample(1, 1, batch, 0.1 + batch / 1000, 0.0) for batch in (32, 64, 128, 256)]
    assert decide(round_of("t4=4x4", seen(*alone, peak=1))).grants["a"].gpu_count == 2
    dear = [Sample(1, 2, batch, 20.0 + batch / 1000, 19.9) for batch in (32, 64, 128, 256)]
    assert decide(round_of("t4=4x4", seen(*alone, *dear, peak=2))).grants["a"].gpu_count == 1
    paper = decide(round_of("t4=4x4", seen(*alone, *dear, peak=2, across_over_within=0.0))).grants[
        "a"
    ]
    assert paper.node_count == 2, (
        "by the paper's prior it is tried on several nodes before it gives up"
    )


def test_a_grant_names_its_nodes_and_the_placer_honours_them() -> None:
    round_input = round_of("t4=4x4", grown("a", peak=3), grown("b", peak=2), grown("c", peak=2))
    result = plan_round(round_input, Pollux(), PLACERS.build("as-decided"))
    nodes = round_input.cluster.nodes
    for job_id, gpus in result.placement.placement.by_job.items():
        wanted = result.decision.grants[job_id].gpus_by_node
        got = {
            name: sum(nodes[round_input.cluster.gpu_node[g]].id == name for g in gpus)
            for name in wanted or {}
        }
        assert got == wanted


def test_a_job_that_restarted_too_often_stays_where_it_is_though_more_is_free() -> None:
    held = replace(grown("a", held=(0,)), restarts=1)
    weary = replace(held, restarts=3400)
    assert decide(round_of("t4=4x4", held)).grants["a"].gpu_count > 1
    assert decide(round_of("t4=4x4", weary)).grants["a"].gpu_count == 1


def test_a_job_that_came_this_second_starts_on_free_gpus_and_takes_none_from_others() -> None:
    decision = decide(
        round_of(
            "t4=1x4",
            grown("old", held=(0, 1, 2), max_gpus=3),
            job(spec("young", submitted_at=100_000.0), Belief()),
        )
    )
    assert (decision.grants["old"].gpu_count, decision.grants["young"].gpu_count) == (3, 1)
    assert (
        decide(round_of("t4=1x4", job(spec("first"), Belief()), now=0.0)).grants["first"].gpu_count
        == 1
    )


def test_two_jobs_that_span_nodes_never_meet_on_one() -> None:
    decision = decide(
        round_of("t4=3x4", *(grown(name, peak=6) for name in ("a", "b", "c"))), generations=20
    )
    for node in ("t4-0", "t4-1", "t4-2"):
        spanning = [
            g
            for g in decision.grants.values()
            if g.gpus_by_node and len(g.gpus_by_node) > 1 and node in g.gpus_by_node
        ]
        assert len(spanning) <= 1


def test_a_rigid_job_over_several_nodes_gets_just_its_count() -> None:
    rigid = grown("rigid", adaptivity=Adaptivity.RIGID, gpu_count=8, batch_size=256)
    decision = decide(round_of("t4=3x4", rigid, grown("b", peak=1)))
    assert decision.grants["rigid"].gpu_count == 8
    assert len(decision.grants["rigid"].gpus_by_node or {}) > 1


def test_a_quota_is_kept_and_named() -> None:
    mine = [grown(f"mine-{n}", tenant="vision", min_gpus=2) for n in range(3)]
    quota = Limit("quota:vision", LimitKind.QUOTA, 4, tenant="vision")
    decision = decide(round_of("t4=4x4", *mine, limits=[quota]))
    assert sum(grant.gpu_count for grant in decision.grants.values()) == 4
    waiting = [job_id for job_id in ("mine-0", "mine-1", "mine-2") if job_id not in decision.grants]
    assert [decision.reasons[job_id].primary for job_id in waiting] == [
        ReasonCode.WAITING_QUOTA
    ] * len(waiting)
    assert len(waiting) == 1


def test_a_search_starts_from_what_the_last_round_found() -> None:
    round_input = round_of("t4=4x4", *(grown(f"j{n}", peak=4) for n in range(5)))
    first = decide(round_input)
    again = decide(replace(round_input, state=first.state, round_number=2), generations=0)
    without = decide(round_input, generations=0)
    assert json.loads(json.dumps(dict(first.state.data))) == dict(first.state.data), (
        "state is JSON data"
    )
    assert again.report.objective < first.report.objective, "state of other parameters is not read"
    same = Pollux().allocate(replace(round_input, state=first.state, round_number=2))
    assert same.report.objective >= first.report.objective > without.report.objective


def test_a_job_that_was_not_searched_for_has_another_reason_than_lower_gain() -> None:
    decision = decide(round_of("t4=2x4", grown("a"), grown("b")), generations=0, remembered=0)
    assert not decision.grants
    assert {reasons.primary for reasons in decision.reasons.values()} == {ReasonCode.NOT_SEARCHED}
    sentence = (
        "GPUs are free for it, but the policy's search may run no generation "
        "and found no place for it: set generations above 0."
    )
    assert {reasons.sentence for reasons in decision.reasons.values()} == {sentence}


def test_nothing_need_be_remembered() -> None:
    first = decide(round_of("t4=2x4", grown("a"), grown("b")), remembered=0)
    again = Pollux(remembered=0).allocate(
        replace(round_of("t4=2x4", grown("a"), grown("b")), state=first.state, round_number=2)
    )
    assert set(first.grants) == set(again.grants) == {"a", "b"}


def test_what_is_remembered_stays_below_a_megabyte() -> None:
    jobs = [grown(f"job-{n:04d}", peak=1) for n in range(400)]
    decision = decide(round_of("t4=100x4", *jobs), generations=1, population=40)
    assert len(json.dumps(dict(decision.state.data))) < 1_000_000
    assert MOST_STATE_NUMBERS * 9 < 1_000_000


def test_jobs_with_least_service_come_first() -> None:
    served = replace(grown("served"), attained_gpu_seconds={"t4": 10.0})
    later = grown("later", submitted_at=5.0)
    assert [j.id for j in in_priority([served, later, grown("early")])] == [
        "early",
        "later",
        "served",
    ]


def test_nodes_of_a_mixed_cluster_are_split_into_parts_as_large_as_the_smallest() -> None:
    nodes = virtual_nodes(Cluster.parse("t4=2x4,a100=1x8"))
    assert nodes.names == ("t4-0", "t4-1", "a100-0", "a100-0/1")
    assert nodes.size.tolist() == [4, 4, 4, 4]
    assert nodes.row((8, 9, 12)).tolist() == [0, 0, 2, 1]
    assert virtual_nodes(Cluster.parse("a100=2x8")).size.tolist() == [8, 8]


def test_drained_gpus_are_in_no_part() -> None:
    cluster = Cluster.of([Node("a", "t4", 4), Node("b", "a100", 8, frozenset({0, 1, 2, 3, 4}))])
    assert virtual_nodes(cluster).size.tolist() == [3, 1, 3]


def test_on_a_mixed_cluster_a_job_keeps_the_type_of_which_it_got_most() -> None:
    known = replace(belief(64, t4=0.5, a100=0.1), gradient=GradientStatistics(1.0, 1e4))
    alone = job(spec("a", max_batch_size=65536), known)
    decision = decide(round_of("t4=1x4,a100=1x8", alone))
    grant = decision.grants["a"]
    assert (grant.gpu_type, grant.gpu_count) == ("a100", 8)
    assert grant.gpus_by_node == {"a100-0": 8}


MIXED = ["t4=1x7,a100=1x3", "t4=1x4,a100=1x4", "a100=2x4,t4=8x2", "a100=1x3,t4=2x3"]


@pytest.mark.parametrize("cluster", MIXED)
@pytest.mark.parametrize("adaptivity", [Adaptivity.ADAPTIVE, Adaptivity.RIGID])
def test_a_job_alone_starts_on_any_number_of_gpus_that_one_of_two_types_has(
    cluster: str, adaptivity: Adaptivity
) -> None:
    most = int(round_of(cluster).cluster.usable_gpus.max())
    for count in range(1, most + 1):
        counts = (
            {"adaptivity": adaptivity, "gpu_count": count, "batch_size": 512}
            if adaptivity is Adaptivity.RIGID
            else {"min_gpus": count, "max_gpus": count}
        )
        both = belief(count, t4=0.5, a100=0.5)
        alone = job(spec("a", **{"max_batch_size": 65536, **counts}), both)
        granted = decide(round_of(cluster, alone)).grants
        assert {name: grant.gpu_count for name, grant in granted.items()} == {"a": count}


@pytest.mark.parametrize("cluster", MIXED)
def test_no_job_waits_while_one_of_two_types_has_enough_idle_gpus_for_it(cluster: str) -> None:
    for least in (2, 3):
        both = belief(least, t4=0.5, a100=0.5)
        jobs = [
            job(spec(name, max_batch_size=65536, min_gpus=least, max_gpus=least), both)
            for name in "abcdef"
        ]
        round_input = round_of(cluster, *jobs)
        granted, usable = decide(round_input).grants, round_input.cluster.usable_gpus
        fit = sum(int(gpus) // least for gpus in usable)
        assert len(granted) >= min(fit, len(jobs))
        assert all(grant.gpu_count == least for grant in granted.values())


def serving(name: str, seconds: float, *, held: tuple[int, ...] = (), **alphas: float) -> Job:
    """It promises 16 answers in so many seconds.

    A type takes `alpha` + 0.016 s on one GPU.
    """
    promise = {
        "workload_kind": WorkloadKind.LATENCY_INFERENCE,
        "batch_size": 16,
        "promised_seconds": seconds,
    }
    known = replace(belief(64, **alphas), gradient=GradientStatistics(1.0, 1e4))
    return job(
        spec(name, gpu_types=tuple(alphas) or None, **promise),
        known,
        held=held,
        started_at=0.0 if held else None,
    )


@pytest.mark.parametrize(
    "cluster", ["t4=1x4,a100=1x4", "a100=1x4,t4=1x4", "rtx=1x4,a100=1x4,t4=1x4"]
)
def test_a_promise_is_kept_by_one_gpu_of_a_type_that_keeps_it(cluster: str) -> None:
    grant = decide(round_of(cluster, serving("a", 0.2, rtx=0.5, t4=0.5, a100=0.1))).grants["a"]
    assert (grant.gpu_type, grant.gpu_count) == ("a100", 1)


@pytest.mark.parametrize("cluster", ["t4=1x4,a100=1x4", "a100=1x4,t4=1x4"])
@pytest.mark.parametrize("busy", [2, 7])
def test_a_promise_is_kept_while_as_many_jobs_in_training_as_there_is_room_for_want_the_gpus(
    cluster: str, busy: int
) -> None:
    known = replace(belief(64, t4=0.5, a100=0.1), gradient=GradientStatistics(1.0, 1e4))
    training = [job(spec(f"j{n:02d}", max_batch_size=65536), known) for n in range(busy)]
    decision = decide(round_of(cluster, *training, serving("a", 0.2, t4=0.5, a100=0.1)))
    assert (decision.grants["a"].gpu_type, decision.grants["a"].gpu_count) == ("a100", 1)


def test_a_promise_gets_its_gpu_from_jobs_that_hold_them_all() -> None:
    held = grown("a", held=(0, 1)), grown("b", held=(2, 3))
    decision = decide(round_of("t4=1x4", *held, serving("s", 0.7, t4=0.5)))
    assert {name: grant.gpu_count for name, grant in decision.grants.items()} in (
        {"a": 1, "b": 2, "s": 1},
        {"a": 2, "b": 1, "s": 1},
    )


def test_a_promise_takes_no_more_gpus_than_keep_it() -> None:
    assert decide(round_of("a100=1x4", serving("a", 0.2, a100=0.1))).grants["a"].gpu_count == 1
    assert (
        decide(round_of("a100=1x4", serving("a", 0.2, held=(0, 1, 2, 3), a100=0.1)))
        .grants["a"]
        .gpu_count
        == 1
    )


def test_of_two_types_that_keep_a_promise_either_serves_and_what_is_held_is_kept() -> None:
    both = {"t4": 0.15, "a100": 0.05}
    decision = decide(
        round_of("t4=1x1,a100=1x1", serving("a", 0.2, **both), serving("b", 0.2, **both))
    )
    assert {grant.gpu_type for grant in decision.grants.values()} == {"t4", "a100"}
    for gpu, name in ((2, "t4"), (5, "a100")):
        grant = decide(round_of("t4=1x4,a100=1x4", serving("a", 0.2, held=(gpu,), **both))).grants[
            "a"
        ]
        assert (grant.gpu_type, grant.gpu_count) == (name, 1)


def test_a_promise_that_no_type_keeps_does_not_use_less_than_a_replica() -> None:
    hopeless = serving("a", 0.001, a100=0.1)
    halved = replace(hopeless, spec=replace(hopeless.spec, gpus_per_replica={"t4": 2}))
    decision = decide(round_of("t4=1x2,a100=1x2", halved, serving("b", 0.2, a100=0.1)))
    assert set(decision.grants) == {"b"}


def test_a_promise_that_no_type_keeps_takes_no_gpus_from_others() -> None:
    alone = decide(round_of("t4=1x4,a100=1x4", grown("b")))
    decision = decide(round_of("t4=1x4,a100=1x4", serving("a", 0.01, t4=0.5, a100=0.1), grown("b")))
    assert "a" not in decision.grants
    assert decision.grants["b"].gpu_count == alone.grants["b"].gpu_count
    assert decision.reasons["a"].primary is ReasonCode.NO_COMPATIBLE_GPU_TYPE


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_job_that_no_gpu_here_can_run_has_that_reason() -> None:
    elsewhere = spec("a", gpu_types=("rtx",), gpus_per_replica={"t4": 3, "rtx": 2})
    known = replace(belief(64, t4=0.5), gradient=GradientStatistics(1.0, 1e4))
    decision = decide(round_of("t4=4x4", job(elsewhere, known)))
    assert dict(decision.grants) == {}
    assert decision.reasons["a"].primary is ReasonCode.NO_COMPATIBLE_GPU_TYPE


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_type_that_is_wholly_out_of_service_counts_for_nothing() -> None:
    cluster = Cluster.of([Node("a", "t4", 8), Node("b", "a100", 2, frozenset({0, 1}))])
    wide = spec("a", gpus_per_replica={"t4": 4, "a100": 2}, max_batch_size=65536)
    decision = decide(
        round_of(
            cluster, job(wide, replace(belief(64, t4=0.5), gradient=GradientStatistics(1.0, 1e4)))
        )
    )
    assert (decision.grants["a"].gpu_type, decision.grants["a"].gpu_count % 4) == ("t4", 0)
