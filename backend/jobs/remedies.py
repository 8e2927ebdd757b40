"""What the owner of a waiting job could change so that the next round starts it.

Offers only what such a round was tried with. This module chooses the declarations to try from the
free GPUs; a `Rehearsal`, given by the serving process, plays the round. Reveals nothing about other
owners' jobs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from sqlmodel import Session

from backend.jobs.admission import objections
from backend.jobs.models import Job
from maat.api.job_answers import Remedy, StartOut
from maat.api.jobs import JobBody
from maat.models.catalog import CatalogModel, load_catalog
from maat.scheduling.explain import ReasonCode
from maat.vocabulary import Adaptivity, WorkloadKind

MOST_TRIED = 8
# CPU seconds for the rounds of one explanation, estimated from the cluster's last round.
MOST_SECONDS = 1.0
MOST_REMEMBERED = 1000
# How long a request waits for another that tries rounds: its thread and connection are needed.
MOST_WAIT_SECONDS = 0.5
_COUNTS_TRIED = 3

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
        ReasonCode.SHARING_NO_GAIN,
        ReasonCode.NOT_SEARCHED,
        ReasonCode.LOWER_GOODPUT_GAIN,
    }
)


@dataclass(frozen=True)
class Start:
    """What a round would give a job."""

    gpu_type: str
    gpu_count: int
    node_count: int


@dataclass(frozen=True)
class Room:
    """What the next round would leave free without the job.

    GPUs by type, and the most of them on one node.
    """

    free_by_type: Mapping[str, int]
    most_on_one_node: Mapping[str, int]


class Stage(Protocol):
    """The present cluster without one of its jobs."""

    @property
    def capacity_by_type(self) -> Mapping[str, int]:
        """All GPUs, drained ones included: submissions are checked against it."""
        ...

    @property
    def last_round_seconds(self) -> float:
        """CPU seconds that deciding and placing took."""
        ...

    def room(self) -> Room: ...
    def start_of(self, changes: Mapping[str, Any]) -> Start | None:
        """Return what the job would get if it were submitted now with these changes.

        Returns None if it would wait again.
        """
        ...


class Rehearsal(Protocol):
    """Plays rounds that are not carried out."""

    def stage(self, session: Session, job: Job) -> Stage | None:
        """Return the stage; None if the cluster has nothing to play a round with."""
        ...


@dataclass(frozen=True)
class Declaration:
    """What the job could request instead.

    `changes`: by field; `code`: the kind of change.
    """

    code: str
    field: str
    changes: Mapping[str, Any]


class RemedyFinder:
    """Tries declarations once per round and version of a job, one job at a time.

    A serving process must not spend its time planning rounds.
    """

    def __init__(self, rehearsal: Rehearsal | None) -> None:
        self._rehearsal = rehearsal
        self._known: OrderedDict[tuple[str, int, int], list[Remedy]] = OrderedDict()
        self._at_work = threading.Lock()

    def remedies_of(self, session: Session, job: Job, *, next_round: int) -> list[Remedy]:
        """Return the remedies; empty if none was found or none could be tried."""
        if self._rehearsal is None or not may_be_helped(job):
            return []
        key = (job.id, job.version, next_round)
        if key in self._known:
            return self._known[key]
        if not self._at_work.acquire(timeout=MOST_WAIT_SECONDS):
            return []
        try:
            return self._known.get(key) or self._find(self._rehearsal, session, job, key)
        finally:
            self._at_work.release()

    def start_of_new(self, session: Session, job: Job) -> tuple[bool, Start | None]:
        """Return whether a round was tried with a job that is not stored, and what it gave it."""
        if self._rehearsal is None or not self._at_work.acquire(timeout=MOST_WAIT_SECONDS):
            return False, None
        try:
            stage = self._rehearsal.stage(session, job)
            if stage is None or stage.last_round_seconds > MOST_SECONDS:
                return False, None
            return True, stage.start_of({})
        finally:
            self._at_work.release()

    def _find(
        self, rehearsal: Rehearsal, session: Session, job: Job, key: tuple[str, int, int]
    ) -> list[Remedy]:
        stage = rehearsal.stage(session, job)
        found = [] if stage is None else list(find_remedies(job, stage))
        self._known[key] = found
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return found


def may_be_helped(job: Job) -> bool:
    """Return whether another request could start the job without losing work.

    A job that is submitted again starts from nothing.
    """
    waits = job.finished_seconds is None and job.gpus is None and not job.cancel_requested
    return waits and job.progress == 0 and job.reason_code in SOLUBLE


def find_remedies(job: Job, stage: Stage) -> Iterator[Remedy]:
    """Yield the first declaration of each kind that a round would start."""
    tries = (
        MOST_TRIED
        if stage.last_round_seconds <= 0
        else min(MOST_TRIED, int(MOST_SECONDS / stage.last_round_seconds) - 1)
    )
    if tries < 1:
        return
    model = load_catalog().get(job.model)
    if model is None:
        return
    found: set[str] = set()
    wanted = (
        d
        for d in declarations(job, model, stage.room(), stage.capacity_by_type)
        if d.code not in found
    )
    for declaration in islice(
        (d for d in wanted if _admissible(job, d, stage.capacity_by_type)), tries
    ):
        start = stage.start_of(declaration.changes)
        if start is not None:
            found.add(declaration.code)
            yield _remedy(job, declaration, start)


def declarations(
    job: Job, model: CatalogModel, room: Room, capacity: Mapping[str, int]
) -> Iterator[Declaration]:
    """Yield declarations to try, the smallest change first."""
    types = [name for name in model.fits if name in capacity]
    allowed = [name for name in types if job.gpu_types is None or name in job.gpu_types]
    rigid = job.adaptivity == Adaptivity.RIGID
    if rigid and job.gpu_count is not None:
        for count in counts_below(job.gpu_count, model, allowed, room):
            yield Declaration("lower_gpu_count", "gpu_count", {"gpu_count": count})
    if job.adaptivity != Adaptivity.ADAPTIVE:
        yield Declaration("make_adaptive", "adaptivity", _adaptive(job))
    if not rigid:
        for count in counts_below(job.min_gpus, model, allowed, room):
            yield Declaration("lower_min_gpus", "min_gpus", {"min_gpus": count})
    more = sorted(
        (name for name in types if name not in allowed),
        key=lambda name: -room.free_by_type.get(name, 0),
    )
    for name in more:
        yield Declaration(
            "allow_more_types", "gpu_types", {"gpu_types": [*(job.gpu_types or ()), name]}
        )
    if more and rigid:
        yield Declaration(
            "make_adaptive_on_more_types", "adaptivity", {**_adaptive(job), "gpu_types": None}
        )


def counts_below(asked: int, model: CatalogModel, types: Sequence[str], room: Room) -> list[int]:
    """Return free GPU counts below the requested count, the largest first.

    They are all free GPUs, those free on one node, and powers of two.
    """
    found: set[int] = set()
    for name in types:
        unit = model.fits[name].gpus_per_replica
        for free in (room.free_by_type.get(name, 0), room.most_on_one_node.get(name, 0)):
            units = min(free, asked - 1) // unit
            if units > 0:
                found |= {units * unit, 2 ** (units.bit_length() - 1) * unit}
    return sorted(found, reverse=True)[:_COUNTS_TRIED]


def _adaptive(job: Job) -> dict[str, Any]:
    """Return the fields that let the policy choose, up to the GPUs requested.

    Inference with a latency SLO keeps its batch.
    """
    bound = job.workload_kind == WorkloadKind.LATENCY_INFERENCE
    most = job.gpu_count if job.adaptivity == Adaptivity.RIGID else job.max_gpus
    batch = job.batch_size if bound else None
    return {
        "adaptivity": Adaptivity.ADAPTIVE.value,
        "gpu_count": None,
        "min_gpus": 1,
        "max_gpus": most,
        "batch_size": batch,
    }


def _admissible(job: Job, declaration: Declaration, capacity: Mapping[str, int]) -> bool:
    """Return whether the changed job could be submitted."""
    given = (
        job.model_dump(include=set(JobBody.model_fields))
        | dict(declaration.changes)
        | {"external_id": None}
    )
    return not objections(JobBody.model_validate(given), models=load_catalog(), capacity=capacity)


def _remedy(job: Job, declaration: Declaration, start: Start) -> Remedy:
    gpus = f"{start.gpu_count} × {start.gpu_type}"
    wish = _wish(job, declaration)
    sentence = f"{wish}: at present, the next round would start it on {gpus}."
    return Remedy(
        code=declaration.code,
        field=declaration.field,
        sentence=sentence,
        changes=dict(declaration.changes),
        starts_with=StartOut(
            gpu_type=start.gpu_type, gpu_count=start.gpu_count, node_count=start.node_count
        ),
    )


def _wish(job: Job, declaration: Declaration) -> str:
    changes = declaration.changes
    match declaration.code:
        case "lower_gpu_count":
            return f"Ask for {_gpus(changes['gpu_count'])} instead of {job.gpu_count}"
        case "lower_min_gpus":
            return f"Let it start with {_gpus(changes['min_gpus'])} instead of {job.min_gpus}"
        case "allow_more_types":
            return f"Let it use {changes['gpu_types'][-1]} too"
        case "make_adaptive_on_more_types":
            return "Let Maat choose its GPU type, GPU count and batch size"
        case _:
            return "Let it adapt, so that Maat chooses its GPU count" + (
                "" if changes["batch_size"] else " and batch size"
            )


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
