"""What is unlikely of what a job's agent reported: shown, and dismissed by who answers for it.

Rounds find it (worker/training/doubts.py). Commits nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.answers import answer_of
from backend.audit.changes import Change, actor_of, record
from backend.clocktime import shown_at, utc_now
from backend.clusters.models import Cluster
from backend.jobs.changing import name_towards
from backend.jobs.models import Job, JobFlag
from backend.jobs.repository import get_job
from backend.problems import NotFound
from maat.api.fields import rfc3339
from maat.api.job_answers import FlagOut
from maat.scheduling.plausibility import Doubt
from maat.vocabulary import Doubted


def flags_by_job(session: Session, job_ids: Collection[str]) -> Mapping[str, Sequence[JobFlag]]:
    """Return the flags of jobs by their ids, oldest first, dismissed ones too."""
    found = defaultdict[str, list[JobFlag]](list)
    if job_ids:
        theirs = select(JobFlag).where(col(JobFlag.job_id).in_(job_ids))
        for flag in session.exec(theirs.order_by(col(JobFlag.at_seconds), col(JobFlag.kind))):
            found[flag.job_id].append(flag)
    return found


def show_flag(flag: JobFlag, cluster: Cluster) -> FlagOut:
    doubt = Doubt(Doubted(flag.kind), flag.said, flag.seen, flag.unit)
    return answer_of(
        FlagOut,
        flag,
        sentence=doubt.sentence,
        at=shown_at(cluster, flag.at_seconds),
        dismissed_at=None if flag.dismissed_at is None else rfc3339(flag.dismissed_at),
    )


def dismiss_flag(session: Session, principal: Principal, job_id: str, kind: Doubted) -> Job:
    """Believe the job again in this; rounds flag it for the same no more.

    One that was dismissed stays as it is. Raises NotFound.
    """
    job = get_job(session, principal, job_id, lock=True)
    flag = session.get(JobFlag, (job.id, kind.value))
    if flag is None:
        raise NotFound(f"Job {job_id!r} has no flag {kind.value!r}.")
    if flag.dismissed_at is None:
        flag.dismissed_at = utc_now()
        flag.dismissed_by = name_towards(principal, job.tenant_id)
        session.add(flag)
        before, after = {"flag": kind.value, "stands": True}, {"flag": kind.value, "stands": False}
        change = Change(
            actor_of(principal), "dismiss flag", job.id, before, after, tenant_id=job.tenant_id
        )
        record(session, change)
    return job
