"""What a waiting job's owner could ask for instead, so that the next round would start it. Offers only what such a round was tried with.

Which declarations to try is decided here, from the room that is left; what would come of one, only a round can tell: `Rehearsal`, which the
process that serves brings along. Says nothing of anybody else's jobs.
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
from maat.api.jobs import JobBody, Remedy, StartOut
from maat.models.catalog import CatalogModel, load_catalog
from maat.scheduling.explain import ReasonCode
from maat.vocabulary import Adaptivity, WorkloadKind

MOST_TRIED = 8
MOST_SECONDS = (
    1.0  # of CPU for the rounds of one explanation, by what the cluster's last round took
)
MOST_REMEMBERED = 1000
MOST_WAIT_SECONDS = 0.5  # of a request for another that tries rounds: its thread and its connection are wanted elsewhere
_COUNTS_TRIED = 3

# Reasons that another declaration may overcome; the others pass, or are the owner's own wish.
SOLUBLE = frozenset(
    {
        ReasonCode.NO_COMPATIBLE_GPU_TYPE,
        ReasonCode.EXCEEDS_CLUSTER,
        ReasonCode.NO_CONFIGURATION,
        ReasonCode.IDLE_COSTS_LESS,
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
    """What the next round would leave free without the job: GPUs by type, and the most of them on one node."""

    free_by_type: Mapping[str, int]
    most_on_one_node: Mapping[str, int]


class Stage(Protocol):
    """The cluster as it stands, without one of its jobs."""

    @property
    def capacity_by_type(self) -> Mapping[str, int]:
        """All GPUs, drained ones included: what a submission is checked against."""
        ...

    @property
    def last_round_seconds(self) -> float:
        """CPU seconds that deciding and placing took."""
        ...

    def room(self) -> Room: ...
    def start_of(self, changes: Mapping[str, Any]) -> Start | None:
        """What the job would get if it were submitted now with these fields changed; None where it would wait again."""
        ...


class Rehearsal(Protocol):
    """Plays rounds that nobody carries out."""

    def stage(self, session: Session, job: Job) -> Stage | None:
        """None where the cluster has nothing to play a round with."""
        ...


@dataclass(frozen=True)
class Declaration:
    """What the job could ask for instead: `changes` by field, `code` of the way."""

    code: str
    field: str
    changes: Mapping[str, Any]


class RemedyFinder:
    """Tries declarations, once for every round and version of a job, one job at a time: a process that serves is not there to plan rounds."""

    def __init__(self, rehearsal: Rehearsal | None) -> None:
        self._rehearsal = rehearsal
        self._known: OrderedDict[tuple[str, int, int], list[Remedy]] = OrderedDict()
        self._at_work = threading.Lock()

    def remedies_of(self, session: Session, job: Job, *, next_round: int) -> list[Remedy]:
        """Empty where nothing that was tried would help, and where nothing could be tried."""
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
    """Whether asking for something else could start it, and would lose no work: a job that is submitted again begins from nothing."""
    waits = job.finished_seconds is None and job.gpus is None and not job.cancel_requested
    return waits and job.progress == 0 and job.reason_code in SOLUBLE


def find_remedies(job: Job, stage: Stage) -> Iterator[Remedy]:
    """The first declaration of each way that a round would start."""
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
    """What could be tried, the smallest departure from what was asked for first."""
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
    """GPU counts below what was asked for that are free now: all that are, all on one node, powers of two; the largest first."""
    found: set[int] = set()
    for name in types:
        unit = model.fits[name].gpus_per_replica
        for free in (room.free_by_type.get(name, 0), room.most_on_one_node.get(name, 0)):
            units = min(free, asked - 1) // unit
            if units > 0:
                found |= {units * unit, 2 ** (units.bit_length() - 1) * unit}
    return sorted(found, reverse=True)[:_COUNTS_TRIED]


def _adaptive(job: Job) -> dict[str, Any]:
    """The fields of a job that lets the policy choose, up to the GPUs that it asked for. Inference within a promise keeps its batch."""
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
    """Whether it could be submitted."""
    given = (
        job.model_dump(include=set(JobBody.model_fields))
        | dict(declaration.changes)
        | {"external_id": None}
    )
    return not objections(JobBody.model_validate(given), models=load_catalog(), capacity=capacity)


def _remedy(job: Job, declaration: Declaration, start: Start) -> Remedy:
    gpus = f"{start.gpu_count} × {start.gpu_type}"
    sentence = f"{_wish(job, declaration)}: as the cluster stands, the next round would start it on {gpus}."
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
