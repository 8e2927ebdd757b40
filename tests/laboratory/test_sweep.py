"""Tests of sweeps: their points, which points are the same simulation, and each runs once."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from laboratory.untimed_results import points_of
from simulation.small import under

from maat.laboratory import content, results, sweep_runner
from maat.laboratory.axes import AXES
from maat.laboratory.content import canonical_json, content_key
from maat.laboratory.fairness import fairness
from maat.laboratory.figures import untimed
from maat.laboratory.results import CorruptedEntry, ResultCache
from maat.laboratory.setup import GeneratedTrace, GivenTrace, Setup
from maat.laboratory.sweep import Sweep, Varied, rows_of
from maat.laboratory.sweep_runner import Origin, run_sweep
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, MaatError, TraceError
from maat.scheduling.stability import Stability
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import Interference, synthetic
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.world_models import catalog_models, measured_models
from maat.vocabulary import TuningRule
from maat.workloads.workloads import TraceJob, Workload

JOBS = (
    TraceJob(
        name="a", submit_seconds=10.0, model="cifar10", gpu_count=1, batch_size=128, work_scale=0.02
    ),
    TraceJob(
        name="b", submit_seconds=130.0, model="bert", gpu_count=2, batch_size=24, work_scale=0.01
    ),
)
BASE = Setup(GivenTrace(Workload("two", JOBS, "sia")), catalog_models(), Cluster.parse("t4=2x4"))


def sweep_of(
    base: Setup = BASE, *, seeds: tuple[int, ...] = (0,), **axes: Sequence[object]
) -> Sweep:
    return Sweep(base, tuple(Varied.of(name, values) for name, values in axes.items()), seeds)


def test_points_are_every_combination_first_axis_outermost_seeds_innermost() -> None:
    points = sweep_of(p=["-1", 0.5], round_seconds=[60, 120], seeds=(3, 1)).points()
    assert [(*point.settings.values(), point.seed) for point in points] == [
        (p, seconds, seed) for p in (-1.0, 0.5) for seconds in (60.0, 120.0) for seed in (3, 1)
    ]
    assert points[0].scenario.policy_parameters == {"p": -1.0}
    assert (points[-1].scenario.conditions.round_seconds, points[-1].scenario.seed) == (120.0, 1)


def test_a_faster_arrival_keeps_the_first_submission_and_shortens_every_gap() -> None:
    (point,) = sweep_of(arrival_rate=[2]).points()
    assert [job.submit_seconds for job in point.scenario.workload.jobs] == [10.0, 70.0]


def test_a_cluster_of_twice_the_size_gets_every_job_twice() -> None:
    _, twice = sweep_of(cluster_size=[1, 2]).points()
    assert twice.scenario.cluster.describe() == "t4=4x4"
    assert [job.name for job in twice.scenario.workload.jobs] == ["a", "a~1", "b", "b~1"]


def test_a_generated_workload_is_drawn_by_the_seed_and_to_the_rate() -> None:
    generated = replace(BASE, trace=GeneratedTrace("philly", hours=2.0))
    slow, other, fast, _ = sweep_of(generated, jobs_per_hour=[5, 10], seeds=(0, 1)).points()
    assert [len(point.scenario.workload) for point in (slow, other, fast)] == [10, 10, 20]
    assert slow.scenario.workload.jobs != other.scenario.workload.jobs
    with pytest.raises(
        InputError, match=r"jobs_per_hour: says how many jobs there are, and so does their number"
    ):
        sweep_of(replace(BASE, trace=GeneratedTrace("philly", jobs=4)), jobs_per_hour=[5]).points()
    (grown,) = sweep_of(generated, cluster_size=[2]).points()
    assert len(grown.scenario.workload) == 80


def test_profiling_and_policy_can_be_varied_together() -> None:
    points = sweep_of(policy=["sia", "fifo"], profiling=["oracle", "no-profile"]).points()
    assert [
        (p.scenario.policy, p.scenario.placer, p.scenario.conditions.fidelity.profiling.value)
        for p in points
    ] == [
        ("sia", "whole-node", "oracle"),
        ("sia", "whole-node", "no-profile"),
        ("fifo", "packed-sticky", "oracle"),
        ("fifo", "packed-sticky", "no-profile"),
    ]


def test_shares_of_bound_jobs_are_set_for_all_points_or_varied() -> None:
    base = under(BASE, strong_scaling_share=0.5)
    points = sweep_of(base, rigid_share=[0, "0.5"]).points()
    assert [
        (p.scenario.conditions.rigid_share, p.scenario.conditions.strong_scaling_share)
        for p in points
    ] == [(0.0, 0.5), (0.5, 0.5)]
    assert len({point.key for point in points}) == 2
    (other,) = sweep_of(strong_scaling_share=[0.5]).points()
    assert other.key == points[0].key


def test_placer_interference_and_tuning_are_varied() -> None:
    shared = replace(BASE, cluster=replace(BASE.cluster, jobs_per_gpu=2), policy="sjf-bsbf")
    points = sweep_of(shared, placer=["shared", "together"], interference=["1.5", "synthetic"])
    assert [
        (point.scenario.placer, point.scenario.conditions.interference) for point in points.points()
    ] == [
        (placer, given)
        for placer in ("shared", "together")
        for given in (Interference.constant(1.5), synthetic())
    ]
    tuned = sweep_of(tuned=["none", "any-pair:64", "best-batch"]).points()
    assert [point.scenario.conditions.tuned for point in tuned] == [
        None,
        TunedJobs(TuningRule.ANY_PAIR, 64),
        TunedJobs(TuningRule.BEST_BATCH),
    ]


def test_the_number_of_generated_jobs_is_varied_within_the_same_hours() -> None:
    base = replace(BASE, trace=GeneratedTrace("philly", hours=2.0))
    small, large = (p.scenario.workload for p in sweep_of(base, jobs=[3, "30"]).points())
    assert (len(small), len(large)) == (3, 30)
    assert max(job.submit_seconds for job in large.jobs) <= 2 * 3600


def test_only_the_policies_that_are_named_have_tuned_jobs() -> None:
    rule = TunedJobs(TuningRule.ANY_PAIR)
    base = replace(BASE, tuned_by_policy={"gavel": rule})
    points = sweep_of(base, policy=["sia", "gavel"]).points()
    assert [point.scenario.conditions.tuned for point in points] == [None, rule]
    spared = under(replace(BASE, tuned_by_policy={"sia": None}), tuned=rule)
    points = sweep_of(spared, policy=["sia", "gavel"]).points()
    assert [point.scenario.conditions.tuned for point in points] == [None, rule]


def test_bounds_on_moves_are_varied_and_the_other_one_of_the_base_stays() -> None:
    base = under(BASE, stability=Stability(most_moves_per_hour=4))
    points = sweep_of(base, least_stay_seconds=["none", "600", 1800]).points()
    assert [point.settings["least_stay_seconds"] for point in points] == ["none", 600.0, 1800.0]
    assert [point.scenario.conditions.stability for point in points] == [
        Stability(None, 4),
        Stability(600.0, 4),
        Stability(1800.0, 4),
    ]
    moves = sweep_of(most_moves_per_hour=["none", "2", 4.0]).points()
    assert [point.settings["most_moves_per_hour"] for point in moves] == ["none", 2, 4]
    assert [point.scenario.conditions.stability.most_moves_per_hour for point in moves] == [
        None,
        2,
        4,
    ]
    assert moves[0].key == content_key(BASE.scenario())


def test_a_job_that_must_stay_moves_less_often_in_the_figures_of_a_sweep() -> None:
    base = replace(
        BASE, trace=GeneratedTrace(jobs=8, hours=0.2), cluster=Cluster.parse("t4=1x4,a100=1x4")
    )
    free, bound = run_sweep(sweep_of(base, least_stay_seconds=["none", 86_400]).points()).rows()
    assert free.mean["restarts_per_job"] > bound.mean["restarts_per_job"] == 0


def test_shares_that_are_more_than_all_jobs_are_refused_before_anything_is_played() -> None:
    with pytest.raises(
        InputError,
        match=(
            r"strong_scaling_share: and rigid_share together are more than all jobs \(got 0.5\). "
            r"Give at most 0.4"
        ),
    ):
        sweep_of(under(BASE, strong_scaling_share=0.5), rigid_share=[0.2, 0.6]).points()


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"rigid_share": [1.5]}, "rigid_share: is no number from 0 to 1 (got 1.5)"),
        ({"p": ["high"]}, "p: is no number from -10 to 10 (got 'high')"),
        ({"p": [0]}, "p: makes all configurations equal (got 0.0)"),
        ({"p": [True]}, "p: is no number"),
        ({"round_seconds": [0]}, "round_seconds: is no number from 1 to 86400 (got 0)"),
        ({"round_seconds": ["nan"]}, "round_seconds: is no number"),
        ({"cluster_size": [1.5]}, "cluster_size: is no whole number from 1 to 64 (got 1.5)"),
        (
            {"profiling": ["psychic"]},
            "profiling: is no profiling mode (got 'psychic'). Use one of: oracle",
        ),
        ({"policy": ["lifo"]}, "policy: is no policy that Maat has (got 'lifo')"),
        ({"policy": ["fifo"], "p": [1]}, "p: is no parameter of fifo"),
        (
            {"least_stay_seconds": [-1]},
            "least_stay_seconds: is no time from 0 to 2592000 s (30 days) (got -1). "
            "Give such a time, as 1800 s are, or none for no bound.",
        ),
        ({"least_stay_seconds": ["nan"]}, "least_stay_seconds: is no time from 0 to 2592000 s"),
        ({"least_stay_seconds": ["1e99"]}, "(got '1e99'). Give such a time"),
        ({"least_stay_seconds": ["soon"]}, "least_stay_seconds: is no time from 0 to 2592000 s"),
        ({"least_stay_seconds": [True]}, "least_stay_seconds: is no time from 0 to 2592000 s"),
        (
            {"most_moves_per_hour": [0]},
            "most_moves_per_hour: is no whole number from 1 to 3600 (got 0). "
            "Give such a number, as 4 is, or none for no bound.",
        ),
        ({"most_moves_per_hour": ["2.5"]}, "most_moves_per_hour: is no whole number"),
        ({"most_moves_per_hour": ["inf"]}, "most_moves_per_hour: is no whole number"),
        ({"most_moves_per_hour": ["none", "none"]}, "most_moves_per_hour: stands twice"),
        (
            {"luck": [1]},
            "vary: is nothing that can be varied (got 'luck'). Use one of: policy",
        ),
        ({"p": []}, "p: has no values"),
        ({"placer": ["lego"]}, "placer: is no placer that Maat has (got 'lego')"),
        ({"interference": [0.5]}, "interference: is no slowdown from 1 to 1000 (got 0.5)"),
        ({"interference": ["table.csv"]}, "interference: is no slowdown from 1 to 1000"),
        ({"interference": [1.5]}, "interference: says what jobs on one GPU lose, but a GPU"),
        ({"jobs": [0]}, "jobs: is no whole number from 1 to"),
        ({"jobs": [5]}, "jobs: is for generated workloads (got 5). Generate a workload"),
        (
            {"tuned": ["best"]},
            "tuned: is no rule by which jobs are tuned (got 'best'). "
            "Use one of: any-pair, best-batch, none; any-pair:64 limits them to 64 GPUs.",
        ),
        ({"tuned": ["any-pair:0"]}, "tuned: is no rule by which jobs are tuned (got 'any-pair:0')"),
        ({"p": [1, 1.0]}, "p: stands twice (got 1.0)"),
        ({}, "vary: are not one or two different settings"),
        (
            {"p": [1], "idle_penalty": [1], "round_seconds": [60]},
            "vary: are not one or two different settings",
        ),
        (
            {"jobs_per_hour": [5]},
            "jobs_per_hour: is for generated workloads (got 5.0). Vary arrival_rate",
        ),
    ],
    ids=str,
)
def test_a_sweep_that_makes_no_sense_is_refused_by_field_value_and_remedy(
    axes: dict[str, list[object]], says: str
) -> None:
    with pytest.raises(InputError) as refused:
        sweep_of(**axes).points()
    assert says in str(refused.value)


@pytest.mark.parametrize("seeds", [(), (1, 1), (-1,)], ids=str)
def test_seeds_must_be_different_whole_numbers(seeds: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="seeds: are not different"):
        sweep_of(p=[1], seeds=seeds)


def test_more_points_than_anyone_waits_for_are_refused() -> None:
    with pytest.raises(InputError, match="more simulations than one sweep"):
        sweep_of(p=[1], seeds=tuple(range(2001)))


OPEN_ONLY = ("jobs", "interference")  # of generated workloads, and of GPUs that jobs share


@pytest.mark.parametrize("name", list(AXES))
def test_no_setting_is_varied_that_the_base_does_not_leave_open(name: str) -> None:
    """Every axis but the policy, which a base always has, knows whether a base sets it."""
    axis = AXES[name]
    words = {"profiling": "no-profile", "policy": "fifo", "placer": "pal", "tuned": "any-pair"}
    value = words.get(name, 2.0 if name not in ("rigid_share", "strong_scaling_share") else 0.5)
    shared = replace(BASE.cluster, jobs_per_gpu=2)
    base = replace(BASE, trace=GeneratedTrace(), cluster=shared) if name in OPEN_ONLY else BASE
    assert not axis.fixed(base)
    assert axis.fixed(axis.apply(base, value)) == (name != "policy")


# ---- content


def test_a_default_that_is_set_and_another_name_of_the_trace_change_no_key() -> None:
    plain = content_key(BASE.scenario())
    said = replace(
        under(BASE, round_seconds=60),
        policy_parameters={"p": -0.5},
        trace=GivenTrace(Workload("other", JOBS, "x")),
    )
    assert content_key(said.scenario()) == plain
    assert content_key(replace(BASE, round_seconds=60).scenario()) == plain
    assert (
        content_key(replace(BASE, models=dict(reversed(BASE.models.items()))).scenario()) == plain
    )


def test_everything_that_the_result_follows_from_changes_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = BASE.models["cifar10"]
    slower = {**BASE.models, "cifar10": replace(model, restart_seconds=model.restart_seconds + 1)}
    other_truth = {**BASE.models, "cifar10": replace(model, truth=BASE.models["bert"].truth)}
    moved = Workload("two", (replace(JOBS[0], submit_seconds=11.0), JOBS[1]), "sia")
    changed = [
        replace(BASE, seed=1),
        replace(BASE, policy_parameters={"p": -1}),
        replace(BASE, policy="fifo"),
        replace(BASE, placer="packed-sticky"),
        under(BASE, round_seconds=61),
        replace(BASE, round_seconds=62),
        replace(BASE, cluster=Cluster.parse("t4=4x2")),
        under(BASE, fidelity=FIDELITIES["sia-artifact"]),
        replace(BASE, models=slower),
        replace(BASE, models=other_truth),
        replace(BASE, trace=GivenTrace(moved)),
    ]
    keys = [content_key(setup.scenario()) for setup in (BASE, *changed)]
    two = replace(BASE.scenario(), cluster=replace(BASE.scenario().cluster, jobs_per_gpu=2))
    keys += [
        content_key(under(two, interference=given))
        for given in (None, Interference.constant(1.5), Interference.constant(2), synthetic())
    ]
    monkeypatch.setattr(content, "SIMULATION_VERSION", content.SIMULATION_VERSION + 1)
    keys.append(content_key(BASE.scenario()))
    assert len(set(keys)) == len(keys)


def test_a_model_that_no_job_uses_does_not_count() -> None:
    fewer = {name: BASE.models[name] for name in ("bert", "cifar10")}
    assert content_key(replace(BASE, models=fewer).scenario()) == content_key(BASE.scenario())


@pytest.mark.needs_data
def test_measured_models_are_told_by_their_measurements_and_not_by_what_was_asked_of_them(
    data_folder: Path,
) -> None:
    folder = data_folder / "sia-artifact" / "profiles"
    measured = replace(BASE, models=measured_models(folder))
    key = content_key(measured.scenario())
    assert key != content_key(BASE.scenario())
    first, _ = points_of(run_sweep(sweep_of(measured, p=[-1, 1]).points())).points
    assert content_key(measured.scenario()) == key
    again = replace(BASE, models=measured_models(folder))
    assert content_key(again.scenario()) == key
    other, _ = points_of(run_sweep(sweep_of(again, p=[-1, 1]).points(), workers=2)).points
    assert other == first


def test_what_has_no_content_to_tell_it_by_is_refused_rather_than_guessed() -> None:
    with pytest.raises(TypeError, match="object is no plain value"):
        canonical_json({"truth": object()})
    assert canonical_json({"b": 1.0, "a": (2, float("inf"))}) == canonical_json(
        {"a": [2.0, float("inf")], "b": 1}
    )


def test_a_drained_gpu_is_another_cluster() -> None:
    scenario = BASE.scenario()
    first, *rest = scenario.cluster.nodes
    drained = Cluster.of([replace(first, drained=frozenset({0})), *rest])
    assert content_key(replace(scenario, cluster=drained)) != content_key(scenario)


# ---- playing


def test_the_figures_are_those_of_the_simulation_itself() -> None:
    (played,) = run_sweep(sweep_of(p=[-1]).points()).points
    alone = simulate(replace(BASE, policy_parameters={"p": -1}).scenario())
    assert played.figures["avg_jct_hours"] == alone.metrics.avg_jct_hours
    assert played.figures["worst_rho"] == fairness(alone).worst
    timed = {name for name in played.figures if name not in untimed(played.figures)}
    assert timed == set(alone.timings())
    assert 0 < played.figures["policy_seconds_p25"] <= played.figures["policy_seconds_median"]
    assert played.figures["policy_seconds_median"] <= played.figures["policy_seconds_p95"]


def test_a_second_sweep_simulates_only_what_the_first_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ResultCache(tmp_path)
    first = run_sweep(sweep_of(p=[-1, 0.5]).points(), cache=cache)
    played = []
    real = sweep_runner.simulate
    monkeypatch.setattr(
        sweep_runner,
        "simulate",
        lambda scenario, **more: played.append(scenario) or real(scenario, **more),
    )
    again = run_sweep(sweep_of(p=[0.5, -1, 1]).points(), cache=cache)
    assert [point.origin for point in again.points] == [
        Origin.CACHE,
        Origin.CACHE,
        Origin.SIMULATED,
    ]
    assert [scenario.policy_parameters["p"] for scenario in played] == [1.0]
    assert [point.figures for point in again.points[:2]] == [
        first.points[1].figures,
        first.points[0].figures,
    ]


def test_points_of_the_same_content_are_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []
    real = sweep_runner.simulate
    monkeypatch.setattr(
        sweep_runner,
        "simulate",
        lambda scenario, **more: played.append(scenario) or real(scenario, **more),
    )
    result = run_sweep(
        sweep_of(replace(BASE, policy="fifo"), policy=["fifo"], round_seconds=[60]).points() * 2
    )
    assert len(result.points) == 2
    assert len(played) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-9],
        lambda text: "",
        lambda text: text.replace('"rounds": ', '"rounds": 9'),
        lambda text: "[]",
    ],
    ids=["cut", "empty", "altered", "other"],
)
def test_a_damaged_entry_is_played_again_and_said(tmp_path: Path, damage: object) -> None:
    cache, points = ResultCache(tmp_path), sweep_of(p=[-1]).points()
    sound = run_sweep(points, cache=cache)
    path = cache.path(points[0].key)
    path.write_text(damage(path.read_text()))  # type: ignore[operator]
    with pytest.raises(CorruptedEntry):
        cache.load(points[0].key)
    repaired = run_sweep(points, cache=cache)
    assert [point.origin for point in repaired.points] == [Origin.REPAIRED]
    assert points_of(repaired).points[0].figures == points_of(sound).points[0].figures
    assert cache.load(points[0].key) == repaired.points[0].figures


def test_several_processes_give_the_same_points_in_the_same_order(tmp_path: Path) -> None:
    points = sweep_of(round_seconds=[60, 300], policy=["sia", "fifo"]).points()
    positions: list[tuple[int, int, int]] = []
    alone = run_sweep(points)
    together = run_sweep(
        points,
        workers=2,
        cache=ResultCache(tmp_path),
        on_progress=lambda at: positions.append((at.done, at.total, at.simulated)),
    )
    assert points_of(together) == points_of(alone)
    assert positions == [(done, 4, done) for done in range(5)]
    assert not list(tmp_path.rglob("*.part"))


def test_a_point_that_cannot_run_is_refused_by_name_from_another_process_too(
    tmp_path: Path,
) -> None:
    points = sweep_of(replace(BASE, cluster=Cluster.parse("h100=1x4")), p=[-1, 1]).points()
    with pytest.raises(TraceError, match="cannot run on any GPU type of this cluster"):
        run_sweep(points, workers=2)


KILLED = """
import sys
from pathlib import Path
from maat.scheduling.cluster import Cluster
from maat.simulation.world_models import catalog_models
from maat.laboratory.setup import GeneratedTrace, Setup
from maat.laboratory.sweep import Sweep, Varied
from maat.laboratory.results import ResultCache
from maat.laboratory.sweep_runner import run_sweep

if __name__ == "__main__":
    trace, cluster = GeneratedTrace("philly", jobs=12, hours=1.0), Cluster.parse("t4=4x4,a100=2x8")
    base = Setup(trace, catalog_models(), cluster)
    points = Sweep(base, (Varied.of("round_seconds", [60]),), tuple(range(400))).points()
    cache = ResultCache(Path(sys.argv[1]))
    run_sweep(points, workers=2, cache=cache, on_progress=lambda at: print(at.done, flush=True))
"""


def test_a_sweep_that_was_killed_keeps_its_points_and_leaves_no_process(tmp_path: Path) -> None:
    script, folder = tmp_path / "sweep.py", tmp_path / "kept"
    script.write_text(KILLED)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    while int(process.stdout.readline()) < 3:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(2400):
        if not _lives(process.pid):
            break
        time.sleep(0.05)
    else:
        pytest.fail("a process of the killed sweep still runs")
    base = Setup(
        GeneratedTrace("philly", jobs=12, hours=1.0),
        catalog_models(),
        Cluster.parse("t4=4x4,a100=2x8"),
    )
    points = Sweep(base, (Varied.of("round_seconds", [60]),), tuple(range(400))).points()
    cache = ResultCache(folder)
    kept = [point for point in points if cache.load(point.key) is not None]
    assert 3 <= len(kept) < 400
    again = run_sweep(kept, cache=cache)
    assert {point.origin for point in again.points} == {Origin.CACHE}


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_rows_are_means_and_sample_deviations_over_the_seeds() -> None:
    played = [
        ({"p": 1.0}, seed, {"avg_jct_hours": value}) for seed, value in enumerate((1.0, 2.0, 6.0))
    ]
    single = ({"p": 2.0}, 0, {"avg_jct_hours": 4.0})
    first, second = rows_of([*played, single])
    assert (first.settings, first.seeds, first.mean, first.spread) == (
        {"p": 1.0},
        (0, 1, 2),
        {"avg_jct_hours": 3.0},
        {"avg_jct_hours": pytest.approx(7**0.5)},
    )
    assert (second.mean, second.spread) == ({"avg_jct_hours": 4.0}, {"avg_jct_hours": 0.0})


def test_a_cache_in_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cache: cannot be written"):
        ResultCache(tmp_path / "file")


def test_every_axis_has_a_title_and_a_name_of_its_own() -> None:
    assert all(axis.title and name == axis.name for name, axis in AXES.items())
    assert json.dumps(list(AXES))


def test_a_cache_without_room_ends_with_its_name_and_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(results.os, "fsync", full)
    with pytest.raises(
        MaatError,
        match=(
            r"cache: .* cannot be written \(No space left on device\)\. "
            r"Make room, or name another folder\."
        ),
    ):
        run_sweep(sweep_of(p=[-1]).points(), cache=ResultCache(tmp_path))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
