"""The simulated week of the benchmark: what it counts, and that it goes on where it stopped."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.forecasting.played import DAY, Promise, Settings, Week, played
from benchmarks.forecasting.week import Weeks, rows_of

SHORT = Settings("fifo", days=0.15, jobs_per_hour=4.0, every_hours=1.0)


def test_a_week_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = played(SHORT)
    hours: list[float] = []
    stopped = played(SHORT, kept_in=tmp_path, most_cpu_seconds=0.0)
    assert len(stopped.cpu) == 1
    assert not stopped.has_ended

    ended = played(SHORT, kept_in=tmp_path, progress=lambda week: hours.append(week.seconds))

    assert ended.has_ended
    assert len(hours) == 2  # of three forecasts the first one was kept
    assert ended.promises == whole.promises
    assert len(ended.promises) > 3


def test_a_week_that_other_settings_have_kept_is_not_taken(tmp_path: Path) -> None:
    played(SHORT, kept_in=tmp_path, most_cpu_seconds=0.0)

    other = played(replace(SHORT, seed=2), kept_in=tmp_path, most_cpu_seconds=0.0)

    assert other.settings.seed == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("seconds", "p50_held", "p90_held", "due"),
    [(DAY + 60.0, 0.0, None, 0), (DAY + 120.0, 0.0, 0.0, 1), (3 * DAY, 0.0, 0.0, 2)],
)
def test_a_promise_counts_once_its_time_has_come_and_not_before(
    seconds: float,
    p50_held: float,
    p90_held: float | None,
    due: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    week = Week(SHORT)  # of which nothing is played: no job has ended
    job_id = week.world.submissions[0].spec.id
    week.promises = [
        Promise(job_id, True, False, DAY, (math.inf, math.inf), (DAY + 60.0, p90))
        for p90 in (DAY + 120.0, 3 * DAY)
    ]
    monkeypatch.setattr(Week, "seconds", seconds)

    (row,) = [
        one
        for one in rows_of(week)
        if (one["source"], one["kind"], one["quantity"]) == ("maat", "submission", "end")
    ]

    assert (row["p50"], row["p90"], row["promises"]) == (p50_held, p90_held, due)


def test_every_policy_plays_every_seed_at_a_rate_that_it_can_serve() -> None:
    found = list(Weeks(("sia", "las"), (1, 2)).settings())

    assert [(one.policy, one.jobs_per_hour, one.seed) for one in found] == [
        ("sia", 14.0, 1),
        ("sia", 14.0, 2),
        ("las", 8.0, 1),
        ("las", 8.0, 2),
    ]


def test_the_command_prints_the_days_that_it_had_time_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(
        "--only forecast_week --week-policies fifo --week-days 0.2 --week-every-hours 1 "
        f"--week-cpu-seconds 0 --week-kept-in {tmp_path} --json".split()
    )

    told = capsys.readouterr()
    assert '"days": 0.0423' in told.out  # an hour and a round
    assert "fifo, seed 1: hour 1 of 5" in told.err
