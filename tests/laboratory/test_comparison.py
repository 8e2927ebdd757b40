"""Tests of comparisons: which runs are made, how they are paired, and what intervals allow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory.untimed_results import outcomes_of

from maat.laboratory.comparison import Basis, Contestant, Outcome, Verdict, paired, report, spreads
from maat.laboratory.comparison_run import ComparisonPlan, run_comparison
from maat.laboratory.setup import GeneratedTrace, GivenTrace, Trace
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.world_models import catalog_models
from maat.vocabulary import TuningRule
from maat.workloads.workloads import TraceJob, Workload

ONE, OTHER = Contestant("sia", "whole-node"), Contestant("fifo", "packed-sticky")


def outcome(
    who: Contestant,
    hours: dict[str, float],
    *,
    trace: str = "t",
    seed: int = 0,
    jobs: int | None = None,
) -> Outcome:
    return Outcome(
        who,
        trace,
        seed,
        {"jobs": len(hours) if jobs is None else jobs, "avg_jct_hours": sum(hours.values())},
        hours,
    )


def contest(**changes: object) -> ComparisonPlan:
    source = GeneratedTrace("philly", 4, 1.0)
    values = {
        "contestants": (ONE, OTHER),
        "traces": (Trace("philly", source),),
        "seeds": (0, 1),
        **changes,
    }
    return ComparisonPlan(catalog_models(), Cluster.parse("t4=4x4"), **values)  # type: ignore[arg-type]


def test_every_contestant_runs_on_every_trace_with_every_seed() -> None:
    runs = [(who, trace.name, seed) for who, trace, seed, _ in contest().scenarios()]

    assert runs == [(who, "philly", seed) for who in (ONE, OTHER) for seed in (0, 1)]


def test_contestants_meet_the_same_jobs() -> None:
    jobs = {(who, seed): scenario.workload.jobs for who, _, seed, scenario in contest().scenarios()}

    assert jobs[ONE, 0] == jobs[OTHER, 0] != jobs[ONE, 1] == jobs[OTHER, 1]


def test_the_same_result_comes_from_two_processes_from_one_and_from_what_was_kept(
    tmp_path: Path,
) -> None:
    alone = run_comparison(contest())
    side_by_side = run_comparison(contest(), workers=2, cache=tmp_path)
    kept = run_comparison(contest(), cache=tmp_path)

    assert outcomes_of(alone) == outcomes_of(side_by_side)
    assert kept == side_by_side
    assert {len(o.jct_hours) for o in alone} == {4}


def test_a_better_mean_over_the_jobs_that_can_run_is_no_verdict() -> None:
    hours = {f"j{i}": 2.0 + i for i in range(16)}
    theirs = outcome(ONE, hours)
    ours = outcome(OTHER, {name: each / 2 for name, each in hours.items()}, jobs=30)
    stuck = replace(ours, figures={**ours.figures, "cannot_run": 14})

    (found,) = paired([theirs, stuck], ONE)
    (free,) = paired([theirs, ours], ONE)
    (other_way,) = paired([theirs, stuck], OTHER)

    assert (found.verdict, found.cannot_run) == (Verdict.NOT_ALL_RUN, 14)
    assert free.verdict is Verdict.FASTER
    assert (other_way.verdict, other_way.baseline_cannot_run) == (Verdict.NOT_ALL_RUN, 14)


def test_differences_are_taken_job_by_job_and_jobs_without_a_partner_are_counted() -> None:
    ours = outcome(ONE, {"a": 1.0, "b": 2.0, "c": 9.0})
    theirs = outcome(OTHER, {"a": 2.0, "b": 4.0}, jobs=3)

    (found,) = paired([ours, theirs], OTHER)

    assert found.contestant == ONE
    assert found.jobs == 2
    assert found.left_out == 1
    assert found.difference_hours.estimate == pytest.approx(-1.5)
    assert found.ratio.estimate == pytest.approx(0.5)
    assert found.sooner == 1.0
    assert found.basis is Basis.JOBS


def test_the_interval_of_several_seeds_is_students_over_their_means() -> None:
    gains = {0: 1.0, 1: 2.0, 2: 3.0}
    outcomes = [outcome(ONE, {"a": 10.0 - gain}, seed=seed) for seed, gain in gains.items()]
    outcomes += [outcome(OTHER, {"a": 10.0}, seed=seed) for seed in gains]

    (found,) = paired(outcomes, OTHER)

    assert found.basis is Basis.SEEDS
    assert found.difference_hours.estimate == pytest.approx(-2.0)
    assert found.difference_hours.high == pytest.approx(
        -2.0 + 4.302652729911275 / 3**0.5
    )  # t of 2 degrees of freedom at 0.975


def test_seeds_of_one_trace_are_one_witness_where_there_are_several_traces() -> None:
    gains = {("t", 0): 1.0, ("t", 1): 3.0, ("u", 0): 4.0, ("u", 1): 4.0}
    outcomes = [
        outcome(ONE, {"a": 10.0 - gain}, trace=trace, seed=seed)
        for (trace, seed), gain in gains.items()
    ]
    outcomes += [outcome(OTHER, {"a": 10.0}, trace=trace, seed=seed) for trace, seed in gains]

    (found,) = paired(outcomes, OTHER)

    assert (found.basis, found.jobs) == (Basis.TRACES, 2)
    assert found.difference_hours.estimate == pytest.approx(-3.0)
    assert found.difference_hours.high == pytest.approx(
        -3.0 + 12.706204736432095 * 2**0.5 / 2**0.5
    )  # t of 1 degree of freedom
    assert spreads(outcomes)[ONE]["avg_jct_hours"].deviation == pytest.approx(2**0.5)  # of 8 and 6


def test_seeds_that_change_nothing_are_one_run() -> None:
    outcomes = [
        outcome(who, {"a": hours, "b": 2.0}, seed=seed)
        for who, hours in ((ONE, 1.0), (OTHER, 5.0))
        for seed in range(3)
    ]

    (found,) = paired(outcomes, OTHER)

    assert (found.runs, found.basis) == (1, Basis.JOBS)


def test_nobody_wins_without_certainty() -> None:
    def verdict(gains: list[float]) -> Verdict:
        outcomes = [outcome(ONE, {"a": 10.0 - gain}, seed=seed) for seed, gain in enumerate(gains)]
        outcomes += [outcome(OTHER, {"a": 10.0}, seed=seed) for seed in range(len(gains))]
        return paired(outcomes, OTHER)[0].verdict

    assert verdict([1.0, 1.1, 0.9]) is Verdict.FASTER
    assert verdict([-1.0, -1.1, -0.9]) is Verdict.SLOWER
    assert verdict([5.0, -1.0, 0.5]) is Verdict.NOT_TOLD_APART
    assert verdict([5.0]) is Verdict.NOT_TOLD_APART


def test_fewer_than_ten_jobs_of_one_run_tell_nobody_apart() -> None:
    def verdict(jobs: int) -> Verdict:
        ours = outcome(ONE, {str(n): 1.0 + n / 100 for n in range(jobs)})
        theirs = outcome(OTHER, {str(n): 9.0 + n / 100 for n in range(jobs)})
        return paired([ours, theirs], OTHER)[0].verdict

    assert (verdict(9), verdict(10)) == (Verdict.NOT_TOLD_APART, Verdict.FASTER)


def test_a_mean_and_a_ratio_of_opposite_sign_are_explained() -> None:
    ours = outcome(ONE, {"a": 1.0, "b": 1.0, "c": 1.0, "long": 20.0})
    theirs = outcome(OTHER, {"a": 2.0, "b": 2.0, "c": 2.0, "long": 10.0})

    (slower,), (faster,) = paired([ours, theirs], OTHER), paired([ours, theirs], ONE)

    assert slower.note == (
        "sia + whole-node: JCT ratio 0.707 and difference +1.750 h are both true. "
        "The ratio counts every job alike, long or short (75% finished sooner), "
        "the difference counts hours: the jobs that finished later lost on average "
        "more hours than the others gained."
    )
    assert [row["note"] for row in report([ours, theirs], OTHER)["paired"]] == [slower.note]
    assert faster.note == (
        "fifo + packed-sticky: JCT ratio 1.414 and difference -1.750 h are both true. "
        "The ratio counts every job alike, long or short (25% finished sooner), "
        "the difference counts hours: the jobs that finished sooner gained on average "
        "more hours than the others lost."
    )


@pytest.mark.parametrize(
    "hours",
    [(1.0, 5.0), (2.0, 10.0), (3.0, 30.0), (1.9, 10.1001)],
    ids=["better", "equal", "worse", "nearly"],
)
def test_a_mean_and_a_ratio_that_agree_need_no_explanation(hours: tuple[float, float]) -> None:
    ours, theirs = (
        outcome(ONE, dict(zip("ab", hours, strict=True))),
        outcome(OTHER, {"a": 2.0, "b": 10.0}),
    )

    assert [
        found.note for found in (*paired([ours, theirs], OTHER), *paired([ours, theirs], ONE))
    ] == [None, None]


def test_two_names_of_the_same_jobs_are_no_two_traces() -> None:
    job = TraceJob(
        name="a", submit_seconds=0.0, model="cifar10", gpu_count=1, batch_size=128, work_scale=0.02
    )
    same = tuple(Trace(name, GivenTrace(Workload(name, (job,), "sia"))) for name in ("one", "copy"))

    with pytest.raises(
        InputError,
        match=(
            r"trace: has the same jobs as one; together they are one trace \(got 'copy'\). "
            r"Name each trace once."
        ),
    ):
        contest(traces=same)


def test_other_names_of_jobs_make_no_second_trace() -> None:
    job = TraceJob(
        name="a", submit_seconds=0.0, model="cifar10", gpu_count=1, batch_size=128, work_scale=0.02
    )
    renamed = tuple(
        Trace(name, GivenTrace(Workload(name, (replace(job, name=name),), "sia")))
        for name in ("one", "copy")
    )

    with pytest.raises(InputError, match="has the same jobs as one"):
        contest(traces=renamed)


def test_a_policy_with_other_parameters_is_another_contestant_and_says_so() -> None:
    soft = Contestant("sia", "whole-node", policy_parameters=(("p", -1),))

    scenarios = {
        who: scenario
        for who, _, _, scenario in contest(contestants=(ONE, soft), seeds=(0,)).scenarios()
    }

    assert scenarios[soft].policy_parameters == {"p": -1}
    assert (soft.name, soft.variant, ONE.name) == (
        "sia (p=-1) + whole-node",
        "p=-1",
        "sia + whole-node",
    )


def test_tuned_jobs_of_one_contestant_leave_the_others_theirs() -> None:
    rule = TunedJobs(TuningRule.ANY_PAIR, 64)
    tuned = replace(OTHER, tuned=rule)
    assert tuned.name == "fifo (tuned=any-pair:64) + packed-sticky"
    plan = contest(contestants=(ONE, OTHER, tuned), seeds=(0,))
    assert [scenario.conditions.tuned for *_, scenario in plan.scenarios()] == [None, None, rule]


def test_a_run_in_which_nothing_finished_has_no_partner() -> None:
    assert paired([outcome(ONE, {}, jobs=2), outcome(OTHER, {"a": 1.0}, jobs=2)], OTHER) == ()


def test_the_pooled_p99_is_of_the_jobs_of_all_runs_and_not_the_mean_of_theirs() -> None:
    runs = [
        outcome(ONE, {f"{seed}-{n}": float(n + 100 * seed) for n in range(100)}, seed=seed)
        for seed in range(2)
    ]
    with_p99 = [
        replace(run, figures={**run.figures, "p99_jct_hours": 99.0 + 100 * run.seed})
        for run in runs
    ]
    found = spreads([*with_p99, outcome(OTHER, {}, jobs=2)])
    assert found[ONE]["p99_jct_hours"].mean == 149.0
    assert (found[ONE]["pooled_p99_jct_hours"].mean, found[ONE]["pooled_p99_jct_hours"].runs) == (
        198.0,
        2,
    )
    assert "pooled_p99_jct_hours" not in found[OTHER], "no job finished"


def test_a_single_run_has_a_mean_and_no_deviation() -> None:
    assert spreads([outcome(ONE, {"a": 3.0})])[ONE]["avg_jct_hours"].deviation is None
    two = [outcome(ONE, {"a": 3.0}), outcome(ONE, {"a": 5.0}, seed=1)]
    assert (
        spreads(two)[ONE]["avg_jct_hours"].mean,
        spreads(two)[ONE]["avg_jct_hours"].deviation,
    ) == (4.0, pytest.approx(2**0.5))


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=2, max_size=20))
def test_exchanging_the_two_turns_every_sign(hours: list[tuple[float, float]]) -> None:
    ours = outcome(ONE, {str(i): x for i, (x, _) in enumerate(hours)})
    theirs = outcome(OTHER, {str(i): y for i, (_, y) in enumerate(hours)})

    (there,), (back,) = paired([ours, theirs], OTHER), paired([ours, theirs], ONE)

    assert there.difference_hours.estimate == pytest.approx(-back.difference_hours.estimate)
    assert there.ratio.estimate * back.ratio.estimate == pytest.approx(1.0)
    low, high = there.difference_hours.low, there.difference_hours.high
    assert low is not None
    assert high is not None
    assert low <= there.difference_hours.estimate + 1e-9
    assert high >= there.difference_hours.estimate - 1e-9


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"contestants": ()}, "policy"),
        ({"seeds": (0, 0)}, "seeds"),
        ({"seeds": tuple(range(2000))}, "runs"),
    ],
)
def test_what_compares_nothing_or_too_much_is_refused(
    changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InputError) as refused:
        contest(**changes)
    assert refused.value.field == field
