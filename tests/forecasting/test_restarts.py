"""Restarts where draws decide less often than the live cluster does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from maat.forecasting.draws import CENTRAL, Drawing, Unknown
from maat.forecasting.history import Ended, History, PastLife, Stretch, Tempo
from maat.forecasting.play import Draw, Life, Pacing, play
from maat.forecasting.present import Present, WaitingJob
from maat.forecasting.restarts import RestartRates
from maat.forecasting.truths import PARTS, BelievedTruth, unseen_job
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobSpec, MemoryLimits
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.stability import NO_BOUNDS, Stability
from maat.vocabulary import Adaptivity

FITTER = MemoisingFitter()
LIFE = PastLife({"t4": tuple(Sample(1, 1, batch, batch / 10, 0.0) for batch in (10, 20, 30))})
"""Ten samples a second on one GPU."""
COARSE = Pacing(resolution=0.05, standing=0.05)


def job(job_id: str, *, model: str = "m") -> JobSpec:
    """A rigid job of 20,000 s on one t4, which loses 100 s with a restart."""
    return JobSpec(
        id=job_id,
        model=model,
        submitted_at=0.0,
        work=200_000.0,
        initial_batch_size=10,
        max_batch_size=10,
        batch_size=10,
        gpu_count=1,
        adaptivity=Adaptivity.RIGID,
        memory={"t4": MemoryLimits(1, 30)},
        restart_seconds=100.0,
    )


def present(*specs: JobSpec) -> Present:
    return Present(
        now=0.0,
        next_round_at=0.0,
        round_seconds=10.0,
        cluster=Cluster.parse("t4=1x1"),
        policy=POLICIES.build("sia", {}),
        placer=PLACERS.build("whole-node", {}),
        waiting=tuple(WaitingJob(spec) for spec in specs),
    )


def went(restarts: int, *, seconds: float = 10_000.0, model: str = "m") -> Ended:
    """A job that trained for so long, and restarted so often."""
    parts = np.full(PARTS, seconds / PARTS)
    return Ended("local", model, seconds, Tempo(parts, parts, parts, 2), restarts)


def end_of(
    pacing: Pacing,
    *,
    restarts_per_second: float,
    seed: tuple[int, ...] | None = None,
    stability: Stability = NO_BOUNDS,
) -> float:
    spec = job("a")
    truth = BelievedTruth(unseen_job(spec), ("t4",), past=LIFE, fitter=FITTER)
    life = Life(
        truth,
        spec.restart_seconds,
        restarts_per_second=restarts_per_second,
        restart_seed=seed,
    )
    state = replace(present(spec), stability=stability)
    return play(state, Draw({"a": life}), pacing=pacing, fitter=FITTER).ends["a"]


def test_a_draw_of_few_rounds_pays_for_the_restarts_of_those_it_leaves_out() -> None:
    without = end_of(COARSE, restarts_per_second=0.0)
    with_them = end_of(COARSE, restarts_per_second=1e-3)

    assert without == pytest.approx(20_120, rel=0.01)  # with its profile and its start
    assert with_them - without == pytest.approx(20 * 100.0, rel=0.15)


def test_a_job_that_ends_before_the_next_round_pays_until_its_end() -> None:
    """Its last round is at about 16,000 s: without what follows it would pay for 15 restarts."""
    far_apart = Pacing(resolution=0.5, standing=0.5)

    without = end_of(far_apart, restarts_per_second=0.0)
    with_them = end_of(far_apart, restarts_per_second=1e-3)

    assert with_them - without == pytest.approx(20 * 100.0, rel=0.05)


def test_restarts_that_a_draw_leaves_out_come_by_chance_as_often_as_on_average() -> None:
    """Of 20 each: a Poisson variable, so its standard deviation is 4.5 restarts of 100 s."""
    expected = end_of(COARSE, restarts_per_second=1e-3)

    ends = [end_of(COARSE, restarts_per_second=1e-3, seed=(number,)) for number in range(40)]

    late = np.array(ends) - expected
    assert late.mean() == pytest.approx(0.0, abs=200.0)
    assert late.std() == pytest.approx(450.0, rel=0.35)
    assert ends[7] == end_of(COARSE, restarts_per_second=1e-3, seed=(7,))


def test_the_restarts_of_a_draw_do_not_depend_on_how_often_it_decides() -> None:
    finer = Pacing(resolution=0.025, standing=0.025)

    for seed in ((1,), (2,), (3,)):
        coarse, fine = (
            end_of(pacing, restarts_per_second=1e-3, seed=seed) for pacing in (COARSE, finer)
        )
        assert coarse == pytest.approx(fine, abs=220.0)


def test_a_draw_of_every_round_pays_only_for_what_happens_in_it() -> None:
    assert end_of(Pacing(), restarts_per_second=1e-3) == end_of(Pacing(), restarts_per_second=0.0)


def rate(ended: Sequence[Ended], model: str = "m") -> float:
    return RestartRates(History(ended=ended), ()).of(("", model))


@pytest.mark.parametrize(
    ("stability", "restarts"),
    [
        (Stability(least_stay_seconds=4000.0), 5),
        (Stability(most_moves_per_hour=1), 5.6),
        (Stability(least_stay_seconds=4000.0, most_moves_per_hour=1), 5),
        (Stability(least_stay_seconds=0.0), 20),
        (Stability(least_stay_seconds=10.0, most_moves_per_hour=3600), 20),
    ],
)
def test_a_bound_on_moves_bounds_the_restarts_that_a_draw_leaves_out(
    stability: Stability, restarts: float
) -> None:
    without = end_of(COARSE, restarts_per_second=0.0)
    bounded = end_of(COARSE, restarts_per_second=1e-3, stability=stability)
    assert bounded - without == pytest.approx(restarts * 100.0, rel=0.15)


def test_restarts_count_per_second_of_training() -> None:
    assert rate([went(10)] * 100) == pytest.approx(1e-3)
    assert rate([went(0)] * 100) == 0.0
    assert rate([]) == 0.0


def test_a_model_of_which_little_is_known_restarts_as_others_do() -> None:
    others = [went(10, model="other")] * 100

    assert rate([*others, went(0, seconds=1.0)]) == pytest.approx(1e-3, rel=0.01)
    assert rate([*others, *[went(1)] * 100]) == pytest.approx(1e-4, rel=0.1)


def test_jobs_that_still_run_count() -> None:
    running = replace(unseen_job(job("a")), restarts=1000)
    stretches = {"a": (Stretch("t4", 1, 1, 10_000.0, 0.0, 100_000.0, 100_000.0),)}

    assert RestartRates(History(stretches=stretches), [running]).of(("", "m")) == pytest.approx(0.1)


def test_every_draw_has_the_rate_of_the_model() -> None:
    history = History({(None, ("", "m")): LIFE}, [went(10)] * 100)
    drawing = Drawing(present(job("a")), Unknown(history), FITTER)

    for number in (CENTRAL, 1):
        assert drawing.draw(number).lives["a"].restarts_per_second == pytest.approx(1e-3)


def test_restarts_come_by_chance_in_all_draws_but_the_central_one() -> None:
    history = History({(None, ("", "m")): LIFE}, [went(10)] * 100)
    drawing = Drawing(present(job("a"), job("b")), Unknown(history), FITTER)

    def seeds(number: int) -> list[tuple[int, ...] | None]:
        lives = drawing.draw(number).lives
        return [lives[job_id].restart_seed for job_id in ("a", "b")]

    assert seeds(CENTRAL) == [None, None]
    assert len({*seeds(1), *seeds(2)}) == 4
    assert seeds(1) == seeds(1)
