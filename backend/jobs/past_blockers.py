"""Which jobs kept another from its GPUs in a round that has passed, by the record of that round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, islice
from typing import Any

from sqlmodel import Session, select

from backend.accounts.identity import Principal
from backend.clusters.models import Cluster
from backend.jobs.blockers import MOST_NAMED, least_lacking, many
from backend.jobs.models import Job
from backend.jobs.needs import needed_gpus
from backend.rounds.models import Round
from backend.sight import OTHER_JOB, Sight, sight_of
from maat.api.job_answers import ReasonOut
from maat.scheduling.blocking import Blocking, Holder, Stay
from maat.scheduling.explain import ReasonCode

_BLOCKED = frozenset(
    {ReasonCode.WAITING_CAPACITY, ReasonCode.BEHIND_IN_ORDER, ReasonCode.LOWER_GOODPUT_GAIN}
)
_WHY: Mapping[Stay, str] = {
    Stay.STARTING: "was starting",
    Stay.RESTARTING: "was restarting",
    Stay.BOUND: "had to stay for a time",
    Stay.NOT_PREEMPTIBLE: "could not be preempted",
    Stay.KEPT: "had them by the policy's choice",
}


def with_blockers(
    session: Session, principal: Principal, job: Job, waited: ReasonOut | None
) -> ReasonOut | None:
    """Return why a job waited with the names of those that held its GPUs in that round.

    The reason stays as it is where others did not hold them, GPUs may be shared, or the round was
    pruned.
    """
    if waited is None or waited["code"] not in _BLOCKED or waited["as_of_round"] is None:
        return waited
    cluster = session.get_one(Cluster, job.cluster_id)
    if cluster.jobs_per_gpu > 1:
        return waited
    of_it = (Round.cluster_id == job.cluster_id, Round.number == waited["as_of_round"])
    then = session.exec(select(Round).where(*of_it)).first()
    if then is None or not then.record:
        return waited
    found = _blocking(job, waited["evidence"], then, runs_commands=cluster.runs_commands)
    if found is None:
        return waited
    sight = sight_of(session, principal, [one.job_id for one in found.by])
    record = then.record
    names = dict(zip(record["job_ids"], record["job_names"], strict=True))
    return ReasonOut({**waited, "sentence": _sentence(found, names, sight)})


def _blocking(
    job: Job, evidence: Mapping[str, Any], then: Round, *, runs_commands: bool
) -> Blocking | None:
    holders = _holders(then.record)
    in_service = {name: counts["capacity"] for name, counts in then.gpus_by_type.items()}
    needs = needed_gpus(job, evidence, in_service, runs_commands=runs_commands)
    return least_lacking(needs, evidence, lambda kind: holders.get(kind, ()), in_service)


def _holders(record: Mapping[str, Any]) -> Mapping[str, Sequence[Holder]]:
    """Return who held GPUs after a round, by type.

    A record keeps how many GPUs a job got, not which: each counts by itself.
    """
    numbers, holders = count(), dict[str, list[Holder]]()
    for job_id, grant in record["grants"].items():
        gpus = frozenset(islice(numbers, grant["gpu_count"]))
        stay = _stay(record["reasons"].get(job_id, {}))
        holders.setdefault(grant["gpu_type"], []).append(Holder(job_id, gpus, stay, None))
    return holders


def _stay(why: Mapping[str, Any]) -> Stay:
    """Return why a job stayed, by the reason that the round gave for it."""
    if why.get("code") != ReasonCode.PINNED:
        return Stay.KEPT
    evidence = why["evidence"]
    if evidence.get("preemptible") == 0:
        return Stay.NOT_PREEMPTIBLE
    if "stays_for_seconds" in evidence:
        return Stay.BOUND
    return Stay.STARTING if evidence.get("starting") == 1 else Stay.RESTARTING


def _sentence(found: Blocking, names: Mapping[str, str], sight: Sight) -> str:
    needed = f"It needed {found.needed} {found.gpu_type} of {found.in_service} in service"
    free = f"{many(found.free, 'was', 'were')} free"
    each = [
        f"{f'job {names[one.job_id]}' if sight.may_see(one.job_id) else OTHER_JOB} held "
        f"{one.gpu_count} and {_WHY[one.stay]}"
        for one in found.by[:MOST_NAMED]
    ]
    rest = len(found.by) - MOST_NAMED
    others = "" if rest <= 0 else f"; and {rest} other{'s' * (rest > 1)}"
    return f"{needed}; {free}: {'; '.join(each)}{others}."
