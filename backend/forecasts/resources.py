"""Forecasts as the API answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.answers import answer_of
from backend.clocktime import ClusterTimes, shown_at
from backend.forecasts.coming import Coming
from backend.forecasts.models import JobForecastRow, WhatIf
from backend.jobs.models import Job
from backend.operations.models import Operation
from backend.sight import Sight
from maat.api.fields import rfc3339
from maat.api.forecasts import (
    ForecastOut,
    ForecastTimes,
    HeldOut,
    JobForecastOut,
    JobTimesOut,
    QuantilesOut,
    SideOut,
    SlowedOut,
    is_first_guess,
    late_quantile,
)
from maat.scheduling.explain import ReasonCode
from maat.vocabulary import ForecastBasis

_PAUSED = "It is paused: it starts after somebody resumes it."
_HELD = "A job that it was to follow has not succeeded: it starts after somebody releases it."
_ENDED = "It has ended."


def show_job_forecast(
    job: Job, row: JobForecastRow | None, cluster: ClusterTimes, coming: Coming | None = None
) -> JobForecastOut:
    """Show the latest forecast of a job, or why there is none.

    `coming`: what it waits for; needed where there is no row.
    """
    without = _without(job) or (coming if row is None else None)
    if without is not None or row is None:
        return _bare(job, without or Coming("coming", ""))
    times = show_times(_as_of_now(job, row), row.made_seconds, cluster)
    return JobForecastOut(
        job_id=job.id,
        state="made",
        since=None,
        made_at=shown_at(cluster, row.made_seconds),
        round_number=row.round_number,
        draws=row.draws,
        times=times,
        sentence=sentence_of(times, row.draws),
    )


def _without(job: Job) -> Coming | None:
    if job.finished_seconds is not None:
        return Coming("ended", _ENDED)
    if job.pause_requested:
        return Coming("paused", _PAUSED)
    if job.reason_code == ReasonCode.DEPENDENCY_FAILED:
        return Coming("paused", _HELD)
    return None


def times_of(job: Job, row: JobForecastRow | None, cluster: ClusterTimes) -> JobTimesOut | None:
    """Show start and end of a job in a list; None where `show_job_forecast` has no times."""
    if row is None or _without(job) is not None:
        return None
    times = show_times(_as_of_now(job, row), row.made_seconds, cluster)
    made_at = shown_at(cluster, row.made_seconds)
    return JobTimesOut(
        made_at=made_at,
        draws=row.draws,
        start=times["start"],
        end=times["end"],
        basis=times["basis"],
        precedents=times["precedents"],
    )


def _as_of_now(job: Job, row: JobForecastRow) -> Mapping[str, Any]:
    """A forecast of a job that has begun since says nothing of a start any more."""
    return {**vars(row), "holds_gpus": row.holds_gpus or job.gpus is not None}


def _bare(job: Job, why: Coming) -> JobForecastOut:
    state: Any = why.state
    return JobForecastOut(
        job_id=job.id,
        state=state,
        since=None if why.since is None else rfc3339(why.since),
        made_at=None,
        round_number=None,
        draws=None,
        times=None,
        sentence=why.sentence,
    )


def show_times(values: Mapping[str, Any], made: float, cluster: ClusterTimes) -> ForecastTimes:
    """Show the quantiles of a job. `values`: as the columns of JobForecastRow."""
    start = None if values["holds_gpus"] else _quantiles(values, "start", made, cluster)
    return ForecastTimes(
        start=start,
        end=_quantiles(values, "end", made, cluster),
        allocations=[
            HeldOut(from_at=shown_at(cluster, at), gpu_type=kind, gpu_count=count)
            for at, kind, count in values["spans"]
        ],
        basis=ForecastBasis(values.get("basis", ForecastBasis.WORK)),
        precedents=values.get("precedents", 0),
    )


def _quantiles(
    values: Mapping[str, Any], what: str, made: float, cluster: ClusterTimes
) -> QuantilesOut:
    p50, p90 = values[f"{what}_p50"], values[f"{what}_p90"]
    return QuantilesOut(
        p50_at=None if p50 is None else shown_at(cluster, p50),
        p90_at=None if p90 is None else shown_at(cluster, p90),
        p50_seconds=None if p50 is None else p50 - made,
        p90_seconds=None if p90 is None else p90 - made,
    )


def sentence_of(times: ForecastTimes, draws: int) -> str:
    """Return start and end in words."""
    end = _about("Ends" if times["start"] is None else "It ends", times["end"], draws)
    return end if times["start"] is None else f"{_about('Starts', times['start'], draws)} {end}"


def _about(verb: str, when: QuantilesOut, draws: int) -> str:
    if when["p50_at"] is None:
        return f"{verb} later than in 14 days, or never."
    if is_first_guess(draws):
        return f"{verb} about {_clock(when['p50_at'])} (a first guess, of one draw)."
    late_name = late_quantile(draws)
    late = (
        f"no {late_name} within 14 days"
        if when["p90_at"] is None
        else f"by {_clock(when['p90_at'])} UTC"
    )
    return f"{verb} about {_clock(when['p50_at'])} ({late}, at {late_name})."


def _clock(shown: str) -> str:
    """Return date and time to the minute."""
    return shown[:16].replace("T", " ")


def show_question(
    asked: WhatIf,
    operation: Operation,
    cluster: ClusterTimes,
    names: Mapping[str, str],
    sight: Sight,
) -> ForecastOut:
    """Show a question. `names`: of jobs by id; those of other tenants are anonymous."""
    result = asked.result
    made = None if result is None else result["made_seconds"]
    computed: dict[str, Any] = dict.fromkeys(
        ("made_at", "draws", "job", "slowed", "before", "after", "notes")
    )
    if result is not None and made is not None:
        job = result["job"]
        computed = {
            "made_at": shown_at(cluster, made),
            "draws": result["draws"],
            "job": None if job is None else show_times(job, made, cluster),
            "slowed": [
                _slowed(row, result.get("times", {}), names, sight, of_now=(made, cluster))
                for row in result["slowed"]
            ],
            "before": _side(result["before"]),
            "after": _side(result["after"]),
            "notes": result.get("notes", []),
        }
    return answer_of(
        ForecastOut,
        asked,
        state=operation.state,
        error=operation.error,
        request={name: asked.request.get(name) for name in ("job", "changes")},
        **computed,
    )


def _side(values: Mapping[str, Any]) -> SideOut:
    return SideOut(
        policy=values.get("policy"),
        policy_parameters=values.get("policy_parameters"),
        placer=values.get("placer"),
        placer_parameters=values.get("placer_parameters"),
        least_stay_seconds=values.get("least_stay_seconds"),
        most_moves_per_hour=values.get("most_moves_per_hour"),
        jobs=values["jobs"],
        later=values["later"],
        waiting=values.get("waiting"),
        ending=values.get("ending"),
        mean_start_seconds=values["mean_start_seconds"],
        mean_end_of_waiting_seconds=values.get("mean_end_of_waiting_seconds"),
        mean_end_seconds=values["mean_end_seconds"],
        last_end_seconds=values["last_end_seconds"],
    )


def _slowed(
    row: Sequence[Any],
    times: Mapping[str, Sequence[Mapping[str, Any]]],
    names: Mapping[str, str],
    sight: Sight,
    *,
    of_now: tuple[float, ClusterTimes],
) -> SlowedOut:
    """Show who is slowed. `times`: before and after, of jobs by id; of some only."""
    job_id, p50, p90, share = row
    sees = sight.may_see(job_id)
    known = times.get(job_id) if sees else None
    before, after = known or (None, None)
    return SlowedOut(
        job_id=sight.job(job_id),
        name=names.get(job_id) if sees else None,
        p50_seconds=p50,
        p90_seconds=p90,
        share=share,
        before=None if before is None else show_times(before, *of_now),
        after=None if after is None else show_times(after, *of_now),
    )
