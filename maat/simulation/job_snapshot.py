"""Snapshots of simulated jobs as JSON data, for an executor that restarts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from maat.scheduling.belief import Belief, Fitter, GradientStatistics, TypeBelief
from maat.scheduling.errors import MaatError
from maat.scheduling.fitting import Sample
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation
from maat.simulation.job_ledger import JobLedger
from maat.simulation.simulated_job import SimulatedJob

VERSION = 1  # of the JSON data; data without a version has the first

T = TypeVar("T")


class SnapshotError(MaatError):
    """Stored data is no snapshot of a simulated job that this version can read."""


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """The state of a job, without its declaration and its samples.

    These are stored separately.
    """

    ledger: JobLedger
    allocation: Allocation | None
    shape: tuple[int, ...]
    fixed_plan: BatchPlan | None
    plan: BatchPlan | None
    goodput: float
    pace: float
    applied_round: int
    gradient: GradientStatistics | None
    peak_replica_count: int

    @classmethod
    def of(cls, job: SimulatedJob) -> JobSnapshot:
        """Take a snapshot, which shares nothing mutable with the job."""
        belief = job.agent.belief
        return cls(
            ledger=job.ledger.copy(),
            allocation=job.allocation,
            shape=job.shape,
            fixed_plan=job.fixed_plan,
            plan=job.plan,
            goodput=job.goodput,
            pace=job.pace,
            applied_round=job.applied_round,
            gradient=belief.gradient,
            peak_replica_count=belief.peak_replica_count,
        )

    def restore(self, job: SimulatedJob, by_type: Mapping[str, TypeBelief]) -> None:
        """Bring a new job to this state; `by_type`: its belief of each GPU type."""
        job.ledger = self.ledger.copy()
        job.place(self.allocation, self.shape, self.fixed_plan)
        job.resume_plan(self.plan)
        job.goodput, job.pace = self.goodput, self.pace
        job.applied_round = self.applied_round
        job.agent.belief = Belief(by_type, self.gradient, self.peak_replica_count)

    def to_json(self) -> Mapping[str, object]:
        ledger, held, gradient = self.ledger, self.allocation, self.gradient
        return {
            "version": VERSION,
            "done_work": ledger.done_work,
            "epoch": ledger.epoch,
            "gpu_type": None if held is None else held.gpu_type,
            "gpus": None if held is None else list(held.gpus),
            "shape": list(self.shape),
            "fixed_plan": _plan_to_json(self.fixed_plan),
            "plan": _plan_to_json(self.plan),
            "goodput": self.goodput,
            "pace": self.pace,
            "restart_left": ledger.restart_left,
            "restarts": ledger.restarts,
            "started_at": ledger.started_at,
            "finished_at": ledger.finished_at,
            "gpu_seconds": dict(ledger.gpu_seconds),
            "profiling_gpu_seconds": dict(ledger.profiling_gpu_seconds),
            "saved_work": ledger.saved_work,
            "unsaved_gpu_seconds": ledger.unsaved_gpu_seconds,
            "interruptions": ledger.interruptions,
            "lost_gpu_seconds": ledger.lost_gpu_seconds,
            "waited_seconds": ledger.waited_seconds,
            "processed_samples": ledger.processed_samples,
            "lost_work": ledger.lost_work,
            "held_seconds": ledger.held_seconds,
            "restarting_seconds": ledger.restarting_seconds,
            "restarting_gpu_seconds": ledger.restarting_gpu_seconds,
            "waiting_since": ledger.waiting_since,
            "held_since": ledger.held_since,
            "moved_at": list(ledger.moved_at),
            "applied_round": self.applied_round,
            "gradient": None if gradient is None else [gradient.square, gradient.variance],
            "peak_replica_count": self.peak_replica_count,
        }

    @classmethod
    def from_json(cls, data: object) -> JobSnapshot:
        """Read what `to_json` wrote. Fields that older data lacks are those of a new job.

        Raises SnapshotError naming the field.
        """
        read = _Reader(data)
        version = read.whole("version", 1)
        if version != VERSION:
            raise SnapshotError(
                f"job snapshot: version {version} was written by another version of Maat; "
                f"this one reads version {VERSION}"
            )
        ledger = JobLedger(
            waiting_since=read.optional_number("waiting_since"),
            done_work=read.number("done_work"),
            epoch=read.whole("epoch"),
            restart_left=read.number("restart_left"),
            restarts=read.whole("restarts"),
            started_at=read.optional_number("started_at"),
            finished_at=read.optional_number("finished_at"),
            gpu_seconds=read.numbers_by_name("gpu_seconds"),
            profiling_gpu_seconds=read.numbers_by_name("profiling_gpu_seconds"),
            saved_work=read.number("saved_work", 0.0),
            unsaved_gpu_seconds=read.number("unsaved_gpu_seconds", 0.0),
            interruptions=read.whole("interruptions", 0),
            lost_gpu_seconds=read.number("lost_gpu_seconds", 0.0),
            waited_seconds=read.number("waited_seconds", 0.0),
            processed_samples=read.number("processed_samples", 0.0),
            lost_work=read.number("lost_work", 0.0),
            held_seconds=read.number("held_seconds", 0.0),
            restarting_seconds=read.number("restarting_seconds", 0.0),
            restarting_gpu_seconds=read.number("restarting_gpu_seconds", 0.0),
            held_since=read.optional_number("held_since"),
            moved_at=read.numbers("moved_at"),
        )
        return cls(
            ledger=ledger,
            allocation=read.allocation(),
            shape=read.wholes("shape") or (),
            fixed_plan=read.plan("fixed_plan"),
            plan=read.plan("plan"),
            goodput=read.number("goodput"),
            pace=read.number("pace", 1.0),
            applied_round=read.whole("applied_round", -1),
            gradient=read.gradient(),
            peak_replica_count=read.whole("peak_replica_count"),
        )


class _Reader:
    """Reads the fields of a JSON object by type.

    Raises SnapshotError naming the field.
    """

    def __init__(self, data: object) -> None:
        if not isinstance(data, Mapping):
            raise SnapshotError(f"job snapshot: is no JSON object but {type(data).__name__}")
        self._data: Mapping[str, object] = data

    def number(self, name: str, default: float | None = None) -> float:
        value = self._data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _unreadable(name, value, "a number")
        return float(value)

    def optional_number(self, name: str) -> float | None:
        return None if self._data.get(name) is None else self.number(name)

    def whole(self, name: str, default: int | None = None) -> int:
        return _whole(name, self._data.get(name, default))

    def wholes(self, name: str) -> tuple[int, ...] | None:
        """Whole numbers, or None for null."""
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise _unreadable(name, value, "a list of whole numbers")
        return tuple(_whole(name, item) for item in value)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Numbers; none if the data lacks them."""
        value = self._data.get(name, [])
        if not isinstance(value, list):
            raise _unreadable(name, value, "a list of numbers")
        return tuple(_Reader({name: item}).number(name) for item in value)

    def numbers_by_name(self, name: str) -> dict[str, float]:
        value = self._data.get(name, {})
        if not isinstance(value, Mapping):
            raise _unreadable(name, value, "an object of numbers")
        inner = _Reader(value)
        return {key: inner.number(key) for key in value}

    def allocation(self) -> Allocation | None:
        gpus, kind = self.wholes("gpus"), self._data.get("gpu_type")
        if gpus is None:
            return None
        if not isinstance(kind, str):
            raise _unreadable("gpu_type", kind, "a text")
        return Allocation(kind, gpus)

    def plan(self, name: str) -> BatchPlan | None:
        found = self.wholes(name)
        if found is None:
            return None
        if len(found) != 3:
            raise _unreadable(name, found, "a batch plan of three numbers")
        return BatchPlan(*found)

    def gradient(self) -> GradientStatistics | None:
        value = self._data.get("gradient")
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2:
            raise _unreadable("gradient", value, "two numbers")
        both = _Reader({"gradient square": value[0], "gradient variance": value[1]})
        return GradientStatistics(both.number("gradient square"), both.number("gradient variance"))


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unreadable(name, value, "a whole number")
    return value


def _unreadable(name: str, value: object, kind: str) -> SnapshotError:
    return SnapshotError(f"job snapshot: {name} is {value!r}, not {kind}")


def _plan_to_json(plan: BatchPlan | None) -> list[int] | None:
    if plan is None:
        return None
    return [plan.total_batch_size, plan.per_gpu_batch_size, plan.accumulation_steps]


# ---- samples, which seldom change and are stored separately


def samples_to_json(by_type: Mapping[str, TypeBelief]) -> Mapping[str, object]:
    """Return the samples of a belief by GPU type, as JSON data; in a simulation all weigh 1."""
    return {kind: [list(s[:5]) for s in known.samples] for kind, known in by_type.items()}


def beliefs_from_json(
    data: Mapping[str, Iterable[Sequence[float]]], *, fitter: Fitter
) -> Mapping[str, TypeBelief]:
    """Return the belief of each GPU type; its model is fitted again at its first use."""
    belief = Belief()
    for kind, rows in data.items():
        samples = [Sample(int(n), int(k), int(m), step, sync) for n, k, m, step, sync in rows]
        belief = belief.with_samples(kind, samples, fitter=fitter)
    return belief.by_type
