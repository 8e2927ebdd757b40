"""How long jobs would have run alone, of the time in which others held their GPUs too.

What sharing cost is no pace of a job: a draw counts it where jobs share in it. So the seconds of
the past in which a job shared count as fewer, by the slowdowns that decisions know now.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlmodel import Session, col, or_, select

from backend.models import Job as JobRow
from backend.models import JobAllocation
from maat.scheduling.job import JobId
from worker.forecasts.specs import Specs

_AT_ONCE = 500  # ids: databases limit the parameters of a statement


@dataclass(frozen=True, slots=True)
class _Holder:
    """A job on a GPU, from when to when; `name`: as tables of slowdowns name it."""

    job_id: JobId
    name: str
    begin: float
    end: float


@dataclass(frozen=True)
class SharedTime:
    """Who held which GPU of a cluster, and how much jobs slow each other there."""

    slowdowns: Mapping[tuple[str, str, int], float]
    on_gpu: Mapping[int, Sequence[_Holder]]

    def seconds_alone(
        self, job_id: JobId, gpus: Sequence[int], *, begin: float, end: float
    ) -> float:
        """Return how long a job would have taken alone for what it did on these GPUs."""
        mine = {gpu: self.on_gpu.get(gpu, ()) for gpu in gpus}
        name = next(
            (one.name for there in mine.values() for one in there if one.job_id == job_id), None
        )
        others = [one for there in mine.values() for one in there if one.job_id != job_id]
        if name is None or not others:
            return end - begin
        cuts = {begin, end} | {at for one in others for at in (one.begin, one.end)}
        inside = sorted(at for at in cuts if begin <= at <= end)
        return sum(
            (until - since) / self._slowdown(job_id, name, mine, (since + until) / 2)
            for since, until in pairwise(inside)
        )

    def _slowdown(
        self, job_id: JobId, name: str, mine: Mapping[int, Sequence[_Holder]], at: float
    ) -> float:
        """Return the slowdown at a moment: the largest over its GPUs, as in SharedGpus."""
        return max(
            math.prod(
                self.slowdowns[name, one.name, len(mine)]
                for one in there
                if one.job_id != job_id and one.begin <= at < one.end
            )
            for there in mine.values()
        )


def shared_time(
    session: Session,
    cluster_id: str,
    specs: Specs,
    slowdowns: Mapping[tuple[str, str, int], float],
    *,
    since: float,
) -> SharedTime:
    """Read who held GPUs of a cluster since then; `specs` learns of these jobs too."""
    spans = session.exec(
        select(JobAllocation).where(
            JobAllocation.cluster_id == cluster_id,
            or_(col(JobAllocation.to_seconds).is_(None), col(JobAllocation.to_seconds) > since),
        )
    ).all()
    names = _names(session, {span.job_id for span in spans}, specs)
    on_gpu: dict[int, list[_Holder]] = defaultdict(list)
    for span in spans:
        if span.job_id in names:
            end = math.inf if span.to_seconds is None else span.to_seconds
            holder = _Holder(span.job_id, names[span.job_id], span.from_seconds, end)
            for gpu in span.gpus:
                on_gpu[gpu].append(holder)
    return SharedTime(slowdowns, on_gpu)


def _names(session: Session, job_ids: Iterable[JobId], specs: Specs) -> Mapping[JobId, str]:
    ids, names = sorted(job_ids), dict[JobId, str]()
    for first in range(0, len(ids), _AT_ONCE):
        some = select(JobRow).where(col(JobRow.id).in_(ids[first : first + _AT_ONCE]))
        rows = session.exec(some).all()
        specs.know(session, rows)
        for row in rows:
            spec = specs.spec(row)
            if spec is not None:
                names[row.id] = spec.interference_name
    return names
