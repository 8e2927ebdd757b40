"""What promises were worth: how often what was promised came in time, and how near.

A promise of a quantile counts once that time has come. Then it is decided for every job, whether
it has ended or not, so that slow jobs count as much as fast ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clocktime import cluster_seconds, shown_at
from backend.clusters.models import Cluster
from backend.forecasts.models import ForecastPromise
from backend.forecasts.sharpness import Aimed, sharpness_of
from backend.jobs.models import Job
from backend.moments import moment_of
from maat.api.forecasts import CalibrationBinOut, CalibrationOut, PromiseOut
from maat.vocabulary import JobState, PromiseKind

Quantity = Literal["start", "end"]
QUANTITIES: tuple[Quantity, ...] = ("start", "end")
MOST_PROMISES = 2000
MOST_SHOWN = 500
_LEFT_OUT = frozenset({JobState.FAILED.value, JobState.CANCELLED.value})


@dataclass(frozen=True)
class Kept:
    """A promise beside what happened, cluster seconds. None: it has not happened."""

    promise: ForecastPromise
    start: float | None
    end: float | None


def calibration_of(
    session: Session, principal: Principal, cluster: Cluster, kind: PromiseKind | None
) -> CalibrationOut:
    """Return the calibration over the last promises that the principal may see."""
    now = cluster_seconds(cluster, moment_of(session))
    kept = list(_kept(session, principal, cluster, kind))
    return CalibrationOut(
        cluster_id=cluster.id,
        jobs=len({one.promise.job_id for one in kept}),
        bins=[_bin(kept, what, quantile, now) for what in QUANTITIES for quantile in (0.5, 0.9)],
        sharpness=[sharpness_of(what, _aimed(kept, what), now) for what in QUANTITIES],
        promises=[_shown(one, cluster) for one in kept if one.end is not None][:MOST_SHOWN],
    )


def held(kept: Sequence[Kept], what: Quantity, quantile: float, now: float) -> list[bool]:
    """Return of every promise whose time has come whether it was held."""
    found = []
    for one in kept:
        promised = getattr(one.promise, f"{what}_p{quantile * 100:.0f}")
        if promised is not None and promised <= now and _concerns(one, what):
            happened = one.start if what == "start" else one.end
            found.append(happened is not None and happened <= promised)
    return found


def _aimed(kept: Sequence[Kept], what: Quantity) -> list[Aimed]:
    return [
        Aimed(one.promise.start_p50, one.promise.start_p90, one.start)
        if what == "start"
        else Aimed(one.promise.end_p50, one.promise.end_p90, one.end)
        for one in kept
        if _concerns(one, what)
    ]


def _concerns(one: Kept, what: str) -> bool:
    """Whether a promise tells of a start: not if the job had begun, whether it held GPUs or not."""
    if what == "end":
        return True
    began_before = one.start is not None and one.start < one.promise.made_seconds
    return not one.promise.holds_gpus and not began_before


def _bin(kept: Sequence[Kept], what: Quantity, quantile: float, now: float) -> CalibrationBinOut:
    found = held(kept, what, quantile, now)
    return CalibrationBinOut(
        quantity=what,
        quantile=quantile,
        promises=len(found),
        held=sum(found) / len(found) if found else None,
    )


def _kept(
    session: Session, principal: Principal, cluster: Cluster, kind: PromiseKind | None
) -> Iterable[Kept]:
    """Yield the last promises; a job that failed or was cancelled breaks none."""
    wanted = [col(ForecastPromise.cluster_id) == cluster.id, col(Job.state).not_in(_LEFT_OUT)]
    if kind is not None:
        wanted.append(col(ForecastPromise.kind) == kind.value)
    if not principal.sees_all_tenants:
        wanted.append(col(Job.tenant_id) == principal.tenant_id)
    rows = session.execute(
        select(ForecastPromise, Job.started_seconds, Job.finished_seconds)
        .join(Job, col(Job.id) == col(ForecastPromise.job_id))
        .where(*wanted)
        .order_by(col(ForecastPromise.made_seconds).desc(), col(ForecastPromise.id).desc())
        .limit(MOST_PROMISES)
    )
    for promise, start, end in rows:
        yield Kept(promise, start, end)


def _shown(one: Kept, cluster: Cluster) -> PromiseOut:
    promise = one.promise
    since = promise.made_seconds
    starts = _concerns(one, "start")
    return PromiseOut(
        job_id=promise.job_id,
        kind="submission" if promise.kind == PromiseKind.SUBMISSION else "hourly",
        made_at=shown_at(cluster, since),
        start_p50_seconds=_after(promise.start_p50, since) if starts else None,
        start_p90_seconds=_after(promise.start_p90, since) if starts else None,
        start_seconds=_after(one.start, since) if starts else None,
        end_p50_seconds=_after(promise.end_p50, since),
        end_p90_seconds=_after(promise.end_p90, since),
        end_seconds=_after(one.end, since),
    )


def _after(time: float | None, since: float) -> float | None:
    return None if time is None else time - since
