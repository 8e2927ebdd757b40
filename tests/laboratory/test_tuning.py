"""A workload that reacts to completions, and a hyper-parameter search as one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from simulation.small import LIMITS, spec, truth
from typer.testing import CliRunner

from maat.cli.app import app
from maat.laboratory.reactive import ReactiveExecutor
from maat.laboratory.rented import LatestOnly
from maat.laboratory.tuning import (
    BEST,
    Search,
    Settings,
    TreeParzen,
    Trials,
    Tuning,
    score_of,
    search,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError, TraceError
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.report import SolveReport
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import fidelity
from maat.simulation.submission import Submission
from maat.simulation.world_models import Model

ARTIFACT = fidelity("pollux-artifact")


class Chain:
    """One job after the other, each submitted when the one before has ended."""

    def __init__(self, length: int) -> None:
        self.left, self.seen = length, [(0.0, ())]

    @property
    def exhausted(self) -> bool:
        return self.left == 0

    def submissions(self, now: float, ended: Sequence[JobId]) -> Sequence[Submission]:
        self.seen.append((now, tuple(ended)))
        if self.left == 0 or (len(self.seen) > 2 and not ended):
            return ()
        self.left -= 1
        return (Submission(spec(f"job-{self.left}", submitted_at=now, gpu_count=1), truth(), 0.0),)


def test_the_next_job_comes_when_the_last_has_ended_and_the_loop_waits_for_it() -> None:
    clock, source = JumpingClock(), Chain(3)
    inner = SimulatedExecutor(Cluster.parse("t4=1x1"), clock, ARTIFACT)
    loop = RoundLoop(
        policy=POLICIES.build("fifo"),
        placer=PLACERS.build("packed-sticky"),
        executor=ReactiveExecutor(inner, source),
        store=LatestOnly(),
        clock=clock,
    )
    loop.run()
    assert set(inner.finished) == {"job-0", "job-1", "job-2"}
    assert [ended for _, ended in source.seen if ended] == [("job-2",), ("job-1",), ("job-0",)]
    assert inner.finished["job-1"].spec.submitted_at >= (inner.finished["job-2"].finished_at or 0.0)


class Given:
    """A sampler with the same settings for every trial.

    It remembers the scores that it is told, and how many trials were open at once.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.told, self.open, self.most_open = settings, dict[JobId, float](), 0, 0

    def ask(self, name: JobId) -> Settings:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        return self.settings

    def tell(self, name: JobId, score: float) -> None:
        self.open -= 1
        self.told[name] = score


def searched(sampler: Given, **changes: object) -> Search:
    model = Model("m", truth(noise_scale=1e4), 0.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    values: Mapping[str, object] = {
        "policy": "fifo",
        "trials": 7,
        "at_a_time": 3,
        "static_gpus": 2,
        "static_batch_per_gpu": 5,
        **changes,
    }
    return search(Tuning(model, Cluster.parse("t4=2x4"), ARTIFACT, **values), sampler)  # type: ignore[arg-type]


def test_so_many_trials_run_at_a_time_and_each_is_told_once() -> None:
    sampler = Given(BEST)
    found = searched(sampler)
    assert sampler.most_open == 3
    assert len(sampler.told) == len(found.records) == 7
    assert {record.name: record.score for record in found.records} == sampler.told
    assert found.makespan_seconds == max(record.finish for record in found.records)
    assert all(record.finish > record.submit for record in found.records)


def test_a_wider_network_takes_longer() -> None:
    narrow, wide = (searched(Given({**BEST, "width": width})) for width in (0.5, 2.0))
    assert wide.average_jct_seconds > 1.5 * narrow.average_jct_seconds


def test_a_scaled_training_takes_as_much_longer_and_its_declaration_says_so() -> None:
    once, thrice = (searched(Given(BEST), work_scale=scale) for scale in (1.0, 3.0))
    assert 2 < thrice.average_jct_seconds / once.average_jct_seconds < 3.2, (
        "waiting for the next round does not scale"
    )
    model = Model("m", truth(), 0.0, {"t4": LIMITS}, {}, {"t4": 10.0})
    trials = Trials(
        Tuning(model, Cluster.parse("t4=1x4"), ARTIFACT, work_scale=3.0),
        model,
        Given(BEST),
        finish_of=lambda _: 0.0,
    )
    submitted = trials.submissions(0.0, ())[0]
    assert submitted.work_scale == pytest.approx(3.0 * BEST["width"])
    assert submitted.spec.work == pytest.approx(submitted.work_scale * model.work)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_training_of_no_length_is_refused_by_name(scale: float) -> None:
    with pytest.raises(ParameterError, match="work_scale"):
        searched(Given(BEST), work_scale=scale)


def test_the_command_line_scales_trials() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed (extra `hpo`)")
    plain, longer = (
        json.loads(
            CliRunner()
            .invoke(app, ["tune", "--trials", "2", "--work-scale", scale, "--json"])
            .stdout
        )
        for scale in ("1", "4")
    )
    assert longer["static"]["avg_jct_seconds"] > 3 * plain["static"]["avg_jct_seconds"]


def test_elastic_allocation_ends_a_search_sooner_than_static() -> None:
    static = searched(Given(BEST))
    elastic = searched(Given(BEST), policy="pollux", static_gpus=None)
    assert elastic.makespan_seconds < static.makespan_seconds


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_a_search_whose_trials_all_come_at_once_runs_them_all(trials: int) -> None:
    assert (
        len(searched(Given(BEST), policy="pollux", static_gpus=None, trials=trials).records)
        == trials
    )


@pytest.mark.parametrize("gpus", [0, 9, 1000])
def test_static_trials_that_never_fit_are_refused_with_the_limit(gpus: int) -> None:
    with pytest.raises(ParameterError, match=rf"static_gpus.*{gpus}.*1 to 8"):
        searched(Given(BEST), static_gpus=gpus)


@pytest.mark.parametrize("samples", [0, 201, 1_000_000])
def test_static_batches_that_the_model_does_not_train_with_are_refused_with_the_limit(
    samples: int,
) -> None:
    with pytest.raises(ParameterError, match=rf"{samples}.*at most 400 samples.* from 1 to 200"):
        searched(Given(BEST), static_batch_per_gpu=samples)


@pytest.mark.parametrize(("gpus", "samples"), [(1, 128), (2, 128), (4, 100), (8, 50)])
def test_static_batches_fit_the_model_if_none_are_given(gpus: int, samples: int) -> None:
    once, again = (
        searched(Given(BEST), static_gpus=gpus, static_batch_per_gpu=given)
        for given in (None, samples)
    )
    assert once.records == again.records


class Miser:
    """A policy that grants nothing."""

    name, default_round_seconds = "miser", 60.0

    def allocate(self, round_input: RoundInput) -> Decision:
        reasons = {job.id: Reasons(ReasonCode.LOWER_GOODPUT_GAIN) for job in round_input.jobs}
        return Decision({}, SolveReport(), reasons)


def test_a_search_that_leaves_trials_unfinished_is_refused_rather_than_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(POLICIES, "build", lambda _: Miser())
    with pytest.raises(ParameterError, match=r"policy.*0 of 3 trials"):
        searched(Given(BEST), trials=3)


def test_the_declared_score_is_best_at_the_best_settings() -> None:
    assert score_of(BEST, 0.0) == pytest.approx(95.5)
    assert all(score_of({**BEST, name: value * 0.9}, 0.0) < 95.5 for name, value in BEST.items())


def test_bad_searches_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="trials"):
        searched(Given(BEST), trials=0)
    model = Model("m", truth(), 0.0, {"a100": LIMITS}, {}, {"a100": 10.0})
    with pytest.raises(TraceError, match="model"):
        search(Tuning(model, Cluster.parse("t4=1x4"), ARTIFACT), Given(BEST))


def test_the_parzen_estimator_finds_better_settings_than_it_began_with() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed (extra `hpo`)")
    sampler, scores = TreeParzen(seed=0), list[float]()
    for number in range(40):
        scores.append(score_of(sampler.ask(f"trial-{number}"), 0.0))
        sampler.tell(f"trial-{number}", scores[-1])
    assert max(scores[20:]) > max(scores[:10])


def test_without_the_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ParameterError, match=r"maat\[hpo\]"):
        TreeParzen(seed=0)
