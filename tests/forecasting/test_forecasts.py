"""Draws, quantiles, and two states side by side, on jobs whose times can be counted by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from maat.forecasting.changes import with_job, with_nodes, with_policy
from maat.forecasting.draws import CENTRAL, PRIOR_PACE, Drawing, Grounds, Unknown
from maat.forecasting.forecast import (
    LEAST_DRAWS,
    Forecast,
    OutOfTime,
    Quantiles,
    forecast,
    order_statistic,
    slowed,
)
from maat.forecasting.history import (
    MOST_CURVES,
    Curve,
    Ended,
    History,
    PastArrival,
    PastLife,
    Stretch,
    Tempo,
    of_tenants,
    together,
)
from maat.forecasting.play import Arrival, Pacing
from maat.forecasting.present import Present, PresentJob, WaitingJob
from maat.forecasting.published import published_life
from maat.forecasting.truths import PARTS, BelievedTruth, gradients_of, unseen_job
from maat.scheduling.belief import GradientStatistics, MemoisingFitter
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.errors import ClusterError
from maat.scheduling.evidence import SharedModels
from maat.scheduling.fitting import Sample
from maat.scheduling.job import UNKNOWN_WORK, JobSpec, MemoryLimits
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.vocabulary import Adaptivity, ForecastBasis

FITTER = MemoisingFitter()
LIFE = PastLife({"t4": tuple(Sample(1, 1, batch, batch / 10, 0.0) for batch in (10, 20, 30))})
"""Ten samples a second on one GPU."""
PUBLISHED = {(None, ("", "m")): LIFE}


def job(job_id: str, *, seconds: float = 1000.0, **changes: object) -> JobSpec:
    """A rigid job on one t4 that takes so long at its step times."""
    values: dict[str, object] = {
        "model": "m",
        "submitted_at": 0.0,
        "work": 10.0 * seconds,
        "initial_batch_size": 10,
        "max_batch_size": 10,
        "batch_size": 10,
        "gpu_count": 1,
        "adaptivity": Adaptivity.RIGID,
        "memory": {"t4": MemoryLimits(1, 30)},
        "restart_seconds": 0.0,
        **changes,
    }
    return JobSpec(id=job_id, **values)  # type: ignore[arg-type]


def present(*specs: JobSpec, cluster: str = "t4=1x1") -> Present:
    return Present(
        now=0.0,
        next_round_at=0.0,
        round_seconds=10.0,
        cluster=Cluster.parse(cluster),
        policy=POLICIES.build("fifo", {}),
        placer=PLACERS.build("packed-sticky", {}),
        waiting=tuple(WaitingJob(spec) for spec in specs),
    )


def went(pace: float, *, owner: str = "local", model: str = "m", change: float = 1.0) -> Ended:
    """A job that took so much longer than believed; in its last half `change` times as much."""
    believed = np.full(PARTS, 100.0)
    factor = np.where(np.arange(PARTS) < PARTS / 2, 1.0, change)
    return Ended(owner, model, 1000.0, Tempo(believed * pace * factor, believed, believed, 2))


def unknown(paces: Sequence[float] = (1.0,) * 100, **changes: object) -> Unknown:
    """By default all jobs have gone as believed."""
    ended = [went(pace) for pace in paces]
    values: dict[str, object] = {"lives": PUBLISHED, "ended": ended, **changes}
    return Unknown(History(**values))  # type: ignore[arg-type]


def made(state: Present, of: Unknown, *, draws: int = LEAST_DRAWS) -> Forecast:
    return forecast(state, of, fitter=FITTER, draws=draws, pacing=Pacing(0.0, 0.5))


# ---- quantiles


def test_quantiles_are_order_statistics_that_cover_a_further_value() -> None:
    values = [float(v) for v in range(1, 10)]
    assert order_statistic(values, 0.5) == 5.0
    assert order_statistic(values, 0.9) == 9.0
    assert order_statistic([*values, math.inf], 0.9) == math.inf
    assert order_statistic([], 0.5) == math.inf


def test_jobs_in_a_queue_start_one_after_the_other() -> None:
    found = made(present(job("a"), job("b")), unknown())

    assert found.jobs["a"].start == Quantiles(20.0, 20.0)  # after its profile
    first, second = found.jobs["a"].end, found.jobs["b"].start
    assert first.p50 == pytest.approx(1020, rel=0.05)
    assert second is not None
    assert second.p50 == pytest.approx(1030, rel=0.05)


def test_a_start_comes_as_late_as_rounds_came() -> None:
    delays = [1.0] * 5 + [4.0] * 15
    found = made(present(job("a")), replace(unknown(), round_delays=delays), draws=29)
    start = found.jobs["a"].start
    assert start is not None
    assert start.p50 == start.p90 == 24.0
    assert {played.starts["a"] for played in found.draws} == {21.0, 24.0}


def test_the_p90_is_as_wide_as_the_paces_of_jobs_that_ended() -> None:
    narrow = made(present(job("a")), unknown([1.0] * 300), draws=19).jobs["a"].end
    wide = made(present(job("a")), unknown([1.0] * 150 + [3.0] * 150), draws=19).jobs["a"].end

    assert narrow.p90 == pytest.approx(1020, rel=0.1)
    assert wide.p90 == pytest.approx(3020, rel=0.1)


def test_without_history_the_prior_counts() -> None:
    drawing = Drawing(present(job("a")), unknown(()), FITTER)
    paces = [drawing.draw(n).lives["a"].truth.slowdown for n in range(1, 200)]

    assert drawing.draw(CENTRAL).lives["a"].truth.slowdown == PRIOR_PACE
    assert sorted(paces)[100] == pytest.approx(PRIOR_PACE, rel=0.1)


def drawn_paces(state: Present, of: Unknown, *, job_id: str = "a") -> list[float]:
    drawing = Drawing(state, of, FITTER)
    return sorted(drawing.draw(n).lives[job_id].truth.slowdown for n in range(1, 200))


def test_the_paces_of_the_owner_count_before_those_of_others() -> None:
    ended = [went(1.5)] * 16 + [went(9.0, owner="ann")] * 50

    mine, others = (
        drawn_paces(present(job("a", owner=owner)), Unknown(History(PUBLISHED, ended)))
        for owner in ("local", "bob")
    )

    assert mine.count(1.5) > 0.7 * len(mine)
    assert others.count(9.0) > 0.6 * len(others)


def lie(pace: float) -> Ended:
    return replace(went(pace, owner="liar"), tenant="red")


def test_another_tenants_jobs_of_one_model_name_say_nothing_unless_the_model_is_shared() -> None:
    honest = [replace(went(1.5, owner="ann"), tenant="blue")] * 10
    ended = [*[lie(900.0)] * 200, *honest]
    state = present(job("a", owner="bob", tenant="blue"))
    own = {(None, ("blue", "m")): LIFE, (None, ("red", "m")): PastLife({})}
    apart = History(own, ended, shared=SharedModels())
    assert max(drawn_paces(state, Unknown(apart))) < 10.0
    assert apart.life_of(state.waiting[0].spec) is LIFE
    shared = History(PUBLISHED, ended, shared=SharedModels({"m"}))
    found = drawn_paces(state, Unknown(shared))
    assert 0.3 < found.count(1.5) / len(found) < 0.7, "half of the weight, however many its jobs"


def test_a_configuration_of_a_shared_model_takes_what_most_tenants_measured() -> None:
    lives = [
        PastLife(
            {"t4": (Sample(1, 1, 10, seconds, 0.0),)}, (((0.5, GradientStatistics(1.0, 2.0)),),)
        )
        for seconds in (1e-6, 1.0, 1.1)
    ]
    found = of_tenants(lives)
    assert found is not None
    assert found.samples == {"t4": (Sample(1, 1, 10, 1.0, 0.0),)}
    assert len(found.curves) == 3
    assert of_tenants(lives[:1]) is lives[0]
    assert of_tenants([]) is None


def test_a_model_of_many_jobs_says_no_more_of_another_model_than_one_of_few() -> None:
    ended = [went(1.2, model=name) for name in ("x", "y", "z")] + [went(9.0, model="many")] * 300

    found = drawn_paces(present(job("a")), Unknown(History(PUBLISHED, ended)))

    assert found.count(9.0) < 0.25 * len(found)


def test_jobs_of_a_model_differ_from_the_one_that_ended_as_those_of_other_models_do() -> None:
    others = [went(pace, model="x") for pace in [1.0, 1.1, 1.2] * 100]

    found = drawn_paces(present(job("a")), Unknown(History(PUBLISHED, [went(4.0), *others])))

    share = len(found) // 20
    assert found[len(found) // 2] == pytest.approx(4.0, rel=0.02)
    assert found[share] == pytest.approx(4.0 / 1.1, rel=0.02)
    assert found[-share] == pytest.approx(4.0 * 1.2 / 1.1, rel=0.02)


def test_a_job_that_has_run_keeps_its_pace_but_for_the_changes_that_others_had() -> None:
    half = replace(unseen_job(job("a")), remaining_work=5000.0)
    state = replace(present(), jobs=(PresentJob(half),))
    stretch = Stretch("t4", 1, 1, 2000.0, 0.0, 5000.0, samples=5000.0)  # 500 s are believed
    of = History(PUBLISHED, [went(1.0, change=1.5)] * 300, stretches={"a": [stretch]})

    found = drawn_paces(state, Unknown(of))

    assert found[len(found) // 2] == pytest.approx(4.0 * 1.5, rel=0.02)


# ---- what is drawn


def test_a_draw_depends_on_its_number_and_the_job_alone() -> None:
    of = unknown([1.0, 2.0, 3.0])
    alone = Drawing(present(job("a")), of, FITTER)
    beside = Drawing(present(job("b"), job("a")), of, FITTER)

    for number in range(5):
        one, other = alone.draw(number).lives["a"], beside.draw(number).lives["a"]
        assert one.truth.slowdown == other.truth.slowdown


def test_the_arrivals_of_the_last_day_come_again_every_day() -> None:
    past = [PastArrival(job("x"), 3600.0), PastArrival(job("y"), 7200.0)]
    drawing = Drawing(present(job("a")), unknown(arrivals=past), FITTER)

    central = list(islice(drawing.draw(CENTRAL).arrivals, 4))
    assert [one.spec.submitted_at / 3600 for one in central] == [22.0, 23.0, 46.0, 47.0]

    drawn = [len(takewhile_before(drawing.draw(n).arrivals, 10 * 86_400.0)) for n in range(1, 300)]
    assert sum(drawn) / len(drawn) == pytest.approx(20, rel=0.1)
    assert len(set(drawn)) > 3


def test_arrivals_that_stand_for_several_come_as_often() -> None:
    past = [PastArrival(job("x"), 3600.0), PastArrival(job("y"), 7200.0)]
    drawing = Drawing(present(job("a")), unknown(arrivals=past, stand_for=2.5), FITTER)

    days = [len(takewhile_before(drawing.draw(n).arrivals, 86_400.0)) for n in range(400)]

    assert days[CENTRAL] == 5
    assert sum(days) / len(days) == pytest.approx(5, rel=0.15)


def takewhile_before(arrivals: Iterable[Arrival], until: float) -> list[Arrival]:
    found = []
    for one in arrivals:
        if one.spec.submitted_at >= until:
            break
        found.append(one)
    return found


def test_work_that_nobody_knows_takes_as_long_as_jobs_that_ran_longer() -> None:
    ended = [Ended("local", "m", seconds) for seconds in (100.0, 2000.0, 2000.0, 2000.0, 2000.0)]
    of = Unknown(History(ended=ended * 40))

    found = made(present(job("a", work=UNKNOWN_WORK)), of).jobs["a"]

    assert found.end.p50 == pytest.approx(2020, rel=0.1)
    assert found.grounds == Grounds(ForecastBasis.RUNS, 200)


def test_an_end_says_what_it_rests_on() -> None:
    def grounds(state: Present, of: Unknown) -> Grounds:
        return Drawing(state, of, FITTER).grounds("a")

    nobody_knows, guess = job("a", work=UNKNOWN_WORK), Grounds(ForecastBasis.GUESS, 0)
    longest = Unknown(History(ended=[Ended("local", "m", 100.0)]))
    ran_longer = replace(unseen_job(nobody_knows), attained_gpu_seconds={"t4": 200.0})
    assert grounds(present(nobody_knows), Unknown(History())) == guess
    assert grounds(present(nobody_knows), longest) == Grounds(ForecastBasis.RUNS, 1)
    assert grounds(replace(present(), jobs=(PresentJob(ran_longer),)), longest) == guess

    assert grounds(present(job("a")), unknown(())) == Grounds(ForecastBasis.WORK, 0)
    assert grounds(present(job("a")), unknown([2.0] * 7)) == Grounds(ForecastBasis.WORK, 7)


def test_work_that_is_known_to_be_very_much_takes_its_time() -> None:
    assert made(present(job("a", work=2e9)), unknown()).jobs["a"].end.p50 is None
    nobody_knows = made(present(job("a", work=UNKNOWN_WORK)), unknown()).jobs["a"]
    assert nobody_knows.end.p50 == pytest.approx(1020, rel=0.1)


# ---- what a job is taken to be


def test_a_jobs_own_step_times_count_before_those_of_a_past_life() -> None:
    seen = unseen_job(job("a"))
    own = seen.belief.with_samples("t4", [Sample(1, 1, 10, 5.0, 0.0)], fitter=FITTER)

    slow = BelievedTruth(replace(seen, belief=own), ["t4"], past=None, fitter=FITTER)
    past = BelievedTruth(seen, ["t4"], past=LIFE, fitter=FITTER)

    assert slow.step("t4", (1,), 10).step_seconds == pytest.approx(5.0, rel=0.01)
    assert past.step("t4", (1,), 10).step_seconds == pytest.approx(1.0, rel=0.01)
    assert not BelievedTruth(seen, ["t4"], past=None, fitter=FITTER).is_measured


def test_gradients_follow_a_past_life_and_agree_with_what_was_measured() -> None:
    curve = tuple((s, GradientStatistics(1.0, 10.0 * s)) for s in (0.0, 1.0))
    seen = unseen_job(job("a"))
    measured = replace(seen.belief, gradient=GradientStatistics(1.0, 10.0))
    half = replace(seen, belief=measured, remaining_work=seen.spec.work / 2)

    truth = BelievedTruth(half, ["t4"], past=replace(LIFE, curves=(curve,)), fitter=FITTER)

    scale = 10.0 / 5.5  # within half a part of the middle it was up to 5.5
    assert truth.gradient(PARTS - 1, 10).variance == pytest.approx(9.5 * scale, rel=0.02)
    assert truth.gradient(0, 10).variance == pytest.approx(0.5 * scale, rel=0.15)


def test_noise_that_grows_at_once_is_not_scaled_by_a_measurement_of_just_before() -> None:
    curve = ((0.0, GradientStatistics(1.0, 0.04)), (0.02, GradientStatistics(1.0, 20.0)))
    seen = unseen_job(job("a"))
    measured = replace(seen.belief, gradient=GradientStatistics(1.0, 0.04))
    later = replace(seen, belief=measured, remaining_work=seen.spec.work * 0.975)

    assert gradients_of(later, curve) == gradients_of(seen, curve)


def test_a_part_of_steep_noise_takes_the_samples_of_its_mean() -> None:
    """Pollux eq. 6: work of one sample takes (phi + M) / (phi + M0), here with M = 20 M0."""
    curve = ((0.0, GradientStatistics(1.0, 0.0)), (0.1, GradientStatistics(1.0, 20.0)))
    part = gradients_of(unseen_job(job("a")), curve)[0].variance

    noise = np.linspace(0.0, 20.0, 2001)
    assert (part + 20) / (part + 1) == pytest.approx(((noise + 20) / (noise + 1)).mean(), rel=0.02)


def test_published_lives_are_those_of_the_catalog() -> None:
    life = published_life("bert")
    assert life is not None
    assert "a100" in life.samples
    assert published_life("no-such-model") is None


def test_a_job_that_has_run_varies_as_others_differ_where_no_change_is_known() -> None:
    half = replace(unseen_job(job("a")), remaining_work=5000.0)
    state = replace(present(), jobs=(PresentJob(half),))
    stretch = Stretch("t4", 1, 1, 2000.0, 0.0, 5000.0, samples=5000.0)  # a pace of 4
    ended = [replace(went(pace), tempo=tempo_of(pace)) for pace in [1.0] * 150 + [1.5] * 150]
    of = History(PUBLISHED, ended, stretches={"a": [stretch]})

    found = drawn_paces(state, Unknown(of))

    assert found[len(found) // 2] == pytest.approx(4.0, rel=0.02)
    assert found[len(found) // 10] == pytest.approx(4.0 / 1.5, rel=0.02)
    assert found[len(found) * 9 // 10] == pytest.approx(4.0 * 1.5, rel=0.02)


def tempo_of(pace: float) -> Tempo:
    """Of one stretch, which says nothing of how the pace changed."""
    believed = np.full(PARTS, 100.0)
    return Tempo(believed * pace, believed, believed, 1)


def test_lives_of_a_model_together_say_what_each_measured_the_first_before_the_others() -> None:
    gradients = ((0.5, GradientStatistics(1.0, 2.0)),)
    first = PastLife({"t4": (Sample(1, 1, 10, 5.0, 0.0),)})
    second = PastLife(
        {"t4": (Sample(1, 1, 10, 9.0, 0.0), Sample(1, 2, 10, 6.0, 1.0))}, (gradients,)
    )

    found = together([first, second])

    assert found == PastLife(
        {"t4": (Sample(1, 1, 10, 5.0, 0.0), Sample(1, 2, 10, 6.0, 1.0))}, (gradients,)
    )
    assert together([]) is None


def noise(level: float, *, measured: int) -> Curve:
    shares = np.linspace(0.0, 1.0, measured)
    return tuple((float(share), GradientStatistics(1.0, level)) for share in shares)


def test_gradients_that_were_measured_seldom_are_left_out_beside_those_measured_often() -> None:
    often, half, seldom = noise(1.0, measured=9), noise(2.0, measured=5), noise(3.0, measured=4)

    found = together([PastLife({}, (one,)) for one in (seldom, half, often)])

    assert found is not None
    assert found.curves == (often, half)
    assert together([PastLife({}, (seldom,))]) == PastLife({}, (seldom,))


def test_the_gradients_of_the_latest_jobs_count_and_of_no_more() -> None:
    curves = [noise(float(level), measured=9) for level in range(1, MOST_CURVES + 2)]

    found = together([PastLife({}, (one,)) for one in curves])

    assert found is not None
    assert found.curves == tuple(curves[:MOST_CURVES])


def test_the_noise_of_a_job_goes_on_as_that_of_one_past_training_in_each_draw() -> None:
    life = replace(LIFE, curves=(noise(1.0, measured=9), noise(4.0, measured=8)))
    drawing = Drawing(present(job("a"), job("b")), unknown(lives={(None, ("", "m")): life}), FITTER)

    def drawn(number: int, job_id: str) -> float:
        (level,) = {
            drawing.draw(number).lives[job_id].truth.gradient(part, 10).variance
            for part in range(PARTS)
        }
        return round(level, 9)

    levels = [drawn(number, "a") for number in range(1, 100)]
    assert drawn(CENTRAL, "a") == 1.0  # the one that was measured most often
    assert 25 < levels.count(4.0) < 75
    assert levels.count(1.0) + levels.count(4.0) == len(levels)
    assert levels == [drawn(number, "a") for number in range(1, 100)]
    assert levels != [drawn(number, "b") for number in range(1, 100)]


def test_jobs_to_come_have_the_noise_of_past_trainings_too() -> None:
    life = replace(LIFE, curves=(noise(1.0, measured=9), noise(4.0, measured=8)))
    of = unknown(lives={(None, ("", "m")): life}, arrivals=[PastArrival(job("x"), 3600.0)])
    drawing = Drawing(present(job("a")), of, FITTER)

    levels = {
        round(arrival.life.truth.gradient(0, 10).variance, 9)
        for number in range(1, 6)
        for arrival in takewhile_before(drawing.draw(number).arrivals, 20 * 86_400.0)
    }

    assert levels == {1.0, 4.0}


# ---- side by side


def test_a_new_job_slows_those_behind_it_and_no_others() -> None:
    state, of = present(job("a"), job("b", submitted_at=100.0)), unknown()
    before = made(state, of)

    after = made(with_job(state, job("new", submitted_at=50.0, seconds=500.0)), of)

    (one,) = [found for found in slowed(before, after) if found.p50]
    assert one.job_id == "b"
    assert one.p50 == pytest.approx(500, rel=0.1)
    assert one.share == 1.0


def test_more_nodes_bring_ends_forward_and_drained_ones_put_them_off() -> None:
    state, of = present(job("a"), job("b"), cluster="t4=2x1"), unknown()
    before = made(state, of)

    less = made(with_nodes(state, drained=["t4-1"]), of)
    assert [one.job_id for one in slowed(before, less) if one.p50 > 0] == ["b"]

    one_node = present(job("a"), job("b"))
    more = made(with_nodes(one_node, added=[Node("new", "t4", 1)]), of)
    (found,) = [one for one in slowed(made(one_node, of), more) if one.p50]
    assert found.p50 == pytest.approx(-1010, rel=0.05)


def test_a_node_of_a_taken_name_is_refused() -> None:
    with pytest.raises(ClusterError):
        with_nodes(present(), added=[Node("t4-0", "t4", 1)])


def test_another_policy_orders_the_queue_anew() -> None:
    state = present(job("long", seconds=2000.0), job("short", submitted_at=1.0, seconds=100.0))
    of = unknown()

    after = made(
        with_policy(state, POLICIES.build("srtf", {}), PLACERS.build("packed-sticky", {})), of
    )

    found = {one.job_id: one.p50 for one in slowed(made(state, of), after)}
    assert found["short"] < 0 < found["long"]


# ---- time


def test_a_forecast_out_of_time_keeps_the_draws_that_were_played() -> None:
    calls = 0

    def look() -> None:
        nonlocal calls
        calls += 1
        if calls > 40:
            raise OutOfTime

    state, of = present(job("a")), unknown()
    found = forecast(state, of, fitter=FITTER, draws=1000, pacing=Pacing(0.1, 1.0), look=look)
    assert 1 <= len(found.draws) < 40

    with pytest.raises(OutOfTime):
        forecast(state, of, fitter=FITTER, draws=1000, least=LEAST_DRAWS, look=look)


def test_a_forecast_without_time_ends_after_the_least_draws() -> None:
    found = forecast(present(job("a")), unknown(), fitter=FITTER, draws=50, has_time=lambda: False)
    assert len(found.draws) == LEAST_DRAWS
