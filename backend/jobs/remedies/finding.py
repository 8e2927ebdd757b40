"""Finds changes with which the next round starts a waiting job.

Offers only what such a round was tried with. Reveals nothing about other owners' jobs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pydantic import ValidationError
from sqlmodel import Session

from backend.clusters.models import Cluster
from backend.commands.models import JobCommand
from backend.jobs.admission import objections
from backend.jobs.models import Job
from backend.jobs.remedies.stage import Rehearsal, Stage, Trial
from backend.jobs.remedies.wishes import Wish, wishes
from backend.jobs.remedies.words import remedy_of
from backend.jobs.requests import request_of
from maat.api.job_answers import Remedy
from maat.models.catalog import load_catalog
from maat.scheduling.explain import ReasonCode, Reasons
from maat.vocabulary import Adaptivity

MOST_TRIED = 16
# CPU seconds for the rounds of one explanation, estimated from the cluster's last round.
MOST_SECONDS = 1.0
MOST_REMEMBERED = 1000
# How long a request waits for another that tries rounds: its thread and connection are needed.
MOST_WAIT_SECONDS = 0.5

# Reasons that another declaration may overcome. The others pass, or the owner chose them.
SOLUBLE = frozenset(
    {
        ReasonCode.NO_COMPATIBLE_GPU_TYPE,
        ReasonCode.EXCEEDS_CLUSTER,
        ReasonCode.NO_CONFIGURATION,
        ReasonCode.EXCEEDS_QUOTA_LIMIT,
        ReasonCode.IDLE_COSTS_LESS,
        ReasonCode.WAITING_QUOTA,
        ReasonCode.WAITING_RESERVATION,
        ReasonCode.WAITING_CAPACITY,
        ReasonCode.FRAGMENTED,
        ReasonCode.BEHIND_IN_ORDER,
        ReasonCode.SHARING_UNKNOWN,
        ReasonCode.SHARING_NO_GAIN,
        ReasonCode.NOT_SEARCHED,
        ReasonCode.LOWER_GOODPUT_GAIN,
    }
)


class RemedyFinder:
    """Tries changes once per round and version of a job, one job at a time.

    A serving process must not spend its time planning rounds.
    """

    def __init__(self, rehearsal: Rehearsal | None) -> None:
        self._rehearsal = rehearsal
        self._remembered: OrderedDict[tuple[str, int, int], list[Remedy]] = OrderedDict()
        self._at_work = threading.Lock()

    def remedies_of(self, session: Session, job: Job, *, next_round: int) -> list[Remedy]:
        """Return the remedies; empty if none was found or none could be tried."""
        if self._rehearsal is None or not may_be_helped(job):
            return []
        key = (job.id, job.version, next_round)
        if key in self._remembered:
            return self._remembered[key]
        if not self._at_work.acquire(timeout=MOST_WAIT_SECONDS):
            return []
        try:
            return self._remembered.get(key) or self._find(self._rehearsal, session, job, key)
        finally:
            self._at_work.release()

    def never_started(
        self, session: Session, cluster: Cluster, jobs: Sequence[Job]
    ) -> Mapping[str, Reasons]:
        """Return why, of those jobs that no round would start; of none if no round can be tried."""
        if self._rehearsal is None:
            return {}
        return self._rehearsal.never_started(session, cluster, jobs)

    def trial_of_new(self, session: Session, job: Job) -> Trial | None:
        """Return what a round would give a job that is not stored; None if none was tried."""
        if self._rehearsal is None or not self._at_work.acquire(timeout=MOST_WAIT_SECONDS):
            return None
        try:
            stage = self._rehearsal.stage(session, job)
            if stage is None or stage.last_round_seconds > MOST_SECONDS:
                return None
            return stage.trial_of_new()
        finally:
            self._at_work.release()

    def _find(
        self, rehearsal: Rehearsal, session: Session, job: Job, key: tuple[str, int, int]
    ) -> list[Remedy]:
        stage = rehearsal.stage(session, job)
        command = session.get(JobCommand, job.id)
        found = [] if stage is None else list(find_remedies(job, stage, command))
        self._remembered[key] = found
        while len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return found


def may_be_helped(job: Job) -> bool:
    """Return whether the job waits for a reason that a change may overcome."""
    waits = job.finished_seconds is None and job.gpus is None and not job.cancel_requested
    return waits and not job.pause_requested and job.reason_code in SOLUBLE


def find_remedies(job: Job, stage: Stage, command: JobCommand | None) -> Iterator[Remedy]:
    """Yield the first change of each kind with which a round would start the job.

    Also one that takes its reason away, if it changes the cluster and not the job. Nothing if the
    next round would start it as it is.
    """
    tries = (
        MOST_TRIED
        if stage.last_round_seconds <= 0
        else min(MOST_TRIED, int(MOST_SECONDS / stage.last_round_seconds) - 2)
    )
    units = _units(job, stage, command)
    if tries < 1 or not units or stage.trial_of({}).start is not None:
        return
    found, adapts = set[str](), command is None or job.adaptivity != Adaptivity.RIGID
    wanted = (
        wish
        for wish in wishes(job, units, stage, may_become_adaptive=adapts)
        if wish.code not in found and (not wish.of_job or _admissible(job, wish, stage, command))
    )
    for wish in islice(wanted, tries):
        trial = _tried(stage, wish)
        if trial.start is not None or (wish.nodes and _is_another(job, trial)):
            found.add(wish.code)
            yield remedy_of(job, wish, trial.start, tenant_weight=stage.tenant_weight)


def _units(job: Job, stage: Stage, command: JobCommand | None) -> Mapping[str, int]:
    """Return the GPU types that the job can run on, and how many GPUs a replica has there."""
    if command is not None:
        return dict.fromkeys(stage.capacity_by_type, 1)
    model = load_catalog().get(job.model)
    return {} if model is None else {n: fit.gpus_per_replica for n, fit in model.fits.items()}


def _tried(stage: Stage, wish: Wish) -> Trial:
    if wish.nodes:
        return stage.trial_of({}, returned={node.id for node in wish.nodes})
    if wish.of_tenant:
        return stage.trial_of({}, tenant_weight=wish.changes["weight"])
    return stage.trial_of(wish.changes)


def _is_another(job: Job, trial: Trial) -> bool:
    """Return whether the job would wait for another reason."""
    return trial.why is not None and trial.why.primary != job.reason_code


def _admissible(job: Job, wish: Wish, stage: Stage, command: JobCommand | None) -> bool:
    """Return whether the changed job could be submitted."""
    try:
        body = request_of(job, wish.changes, command=command)
    except ValidationError:
        return False
    return not objections(
        body,
        models=load_catalog(),
        capacity=stage.capacity_by_type,
        executor=stage.executor,
    )
