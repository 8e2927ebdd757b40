"""Raw rows of a cluster that has lived for some days, written as rounds would leave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from round_rows import round_row
from sqlmodel import Session, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import AllocationReading, Cluster, Job, JobAllocation, Tenant, User
from backend.usage.days import settled_days, store_day, tally_of_day

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = 3600.0, 86_400.0


@dataclass(frozen=True)
class Held:
    """A span of a job: hours since the cluster's first midnight; without an end it goes on.

    `efficiency`: effective samples of a processed one. `starts`: hours until the job ran.
    """

    begin: float
    end: float | None
    gpu_type: str = "t4"
    gpus: tuple[int, ...] = (0, 1, 2, 3)
    efficiency: float = 0.5
    starts: float = 0.0
    lost_gpu_hours: float = 0.0


def cluster_at(session: Session, hours: float) -> Cluster:
    """Set the demo cluster's epoch to a midnight, and its clock to so many hours after it."""
    cluster = session.exec(select(Cluster)).one()
    cluster.epoch, cluster.speed = MIDNIGHT, 1e-9
    cluster.anchor_seconds, cluster.anchor_wall, cluster.anchor_boot = hours * HOUR, utc_now(), None
    session.add(cluster)
    session.flush()
    return cluster


def person(session: Session, tenant: str, name: str) -> User:
    found = session.exec(select(User).where(User.name == name)).first()
    if found is not None:
        return found
    home = session.exec(select(Tenant).where(Tenant.name == tenant)).first() or Tenant(name=tenant)
    session.add(home)
    session.flush()
    made = User(name=name, tenant_id=home.id, role="submitter")
    session.add(made)
    session.flush()
    return made


def lived_job(
    session: Session,
    cluster: Cluster,
    owner: User,
    *spans: Held,
    submitted: float = 0.0,
    model: str = "bert",
    labels: dict[str, str] | None = None,
) -> Job:
    """Write a job with its spans, whose counters are read at their ends and at each midnight."""
    first = min(span.begin for span in spans)
    job = Job(
        cluster_id=cluster.id,
        name="lived",
        owner_id=owner.id,
        tenant_id=owner.tenant_id,
        model=model,
        adaptivity="adaptive",
        submitted_seconds=submitted * HOUR,
        started_seconds=first * HOUR,
        remaining_work=1.0,
        labels=labels or {},
        state="running",
    )
    session.add(job)
    session.flush()
    processed = gained = lost = 0.0
    now = cluster.anchor_seconds
    for span in spans:
        begin = span.begin * HOUR
        end = now if span.end is None else span.end * HOUR
        rate, before = 10.0, (processed, gained, lost)
        for day in range(int(begin // DAY) + 1, int(end // DAY) + 1):
            at = day * DAY
            if begin < at < end:
                done = rate * (at - begin)
                session.add(
                    AllocationReading(
                        cluster_id=cluster.id,
                        at_seconds=at,
                        job_id=job.id,
                        processed_samples=processed + done,
                        gained_samples=gained + done * span.efficiency,
                        lost_gpu_seconds=lost,
                    )
                )
        processed += rate * (end - begin)
        gained += rate * (end - begin) * span.efficiency
        lost += span.lost_gpu_hours * HOUR
        after = (None, None, None) if span.end is None else (processed, gained, lost)
        read = {**_read("before", before), **_read("after", after)}
        session.add(
            JobAllocation(
                job_id=job.id,
                cluster_id=cluster.id,
                round_number=1,
                from_seconds=begin,
                to_seconds=None if span.end is None else end,
                gpu_type=span.gpu_type,
                gpu_count=len(span.gpus),
                node_count=1,
                gpus=list(span.gpus),
                running_seconds=begin + span.starts * HOUR,
                **read,
            )
        )
    job.processed_samples, job.gained_samples, job.lost_gpu_seconds = processed, gained, lost
    session.add(job)
    session.flush()
    return job


def _read(when: str, readings: Sequence[float | None]) -> dict[str, float | None]:
    names = (f"{name}_{when}" for name in ("processed", "gained", "lost"))
    return dict(zip(names, readings, strict=True))


def rounds_every(
    session: Session,
    cluster: Cluster,
    hours: float,
    *,
    until: float,
    capacity: int = 8,
    fragmented: int = 0,
    reserved: int = 0,
) -> None:
    """Write a round every so many hours, from the first midnight on."""
    number = 1
    while (number - 1) * hours <= until:
        found = {"used": 0, "capacity": capacity, "fragmented": fragmented, "reserved": reserved}
        session.add(
            round_row(
                cluster.id,
                number,
                at_seconds=(number - 1) * hours * HOUR,
                gpus_total=capacity,
                gpus_by_type={"t4": found},
            )
        )
        number += 1
    cluster.next_round_number = number
    session.add(cluster)
    session.flush()


def sum_up(database: Database) -> int:
    """Store the sums of every day that is over; returns their number."""
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        days = settled_days(session, cluster)
        for day in days:
            store_day(session, cluster.id, day, tally_of_day(session, cluster, day))
    return len(days)
