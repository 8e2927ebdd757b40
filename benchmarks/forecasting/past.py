"""What a service would have kept of a played cluster: spans, gradients, and how jobs went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maat.forecasting.history import (
    MOST_CURVES,
    Curve,
    Ended,
    History,
    LifeKey,
    PastArrival,
    PastLife,
    Stretch,
    together,
)
from maat.forecasting.paces import Course, tempos_of
from maat.forecasting.published import published_life
from maat.forecasting.truths import unseen_job
from maat.scheduling.belief import Fitter, GradientStatistics
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, JobId
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.world_models import catalog_models

MOST_ENDED = 300


@dataclass(frozen=True, slots=True)
class _Held:
    """What a job held after a round, what it still had to pay for its start, and its work."""

    since: float
    allocation: Allocation
    nodes: int
    restart_left: float
    done: float
    samples: float


class Past:
    """What a service would have kept of the week so far: spans, and gradients, as they changed."""

    def __init__(self, cluster: Cluster, fitter: Fitter) -> None:
        self._cluster, self._fitter = cluster, fitter
        self._gradients: dict[JobId, list[tuple[float, GradientStatistics]]] = defaultdict(list)
        self._stretches: dict[JobId, list[Stretch]] = defaultdict(list)
        self._holdings: dict[JobId, _Held] = {}

    def note(self, now: float, executor: SimulatedExecutor) -> None:
        """Note what the jobs did since the last round, and what they hold from now on."""
        for job_id, held in self._holdings.items():
            job = executor.finished.get(job_id) or executor.jobs[job_id]
            end = now if job.finished_at is None else job.finished_at
            seconds = end - held.since - held.restart_left
            if seconds > 0:
                self._add(job_id, held, seconds, job)
        self._holdings = {
            job_id: _Held(
                now,
                job.allocation,
                len(job.shape),
                job.ledger.restart_left,
                job.ledger.done_work,
                job.ledger.processed_samples,
            )
            for job_id, job in executor.jobs.items()
            if job.allocation is not None
        }

    def _add(self, job_id: JobId, held: _Held, seconds: float, job: SimulatedJob) -> None:
        """Lengthen the job's last stretch, or begin one if it held other GPUs then."""
        kind, count, ledger = held.allocation.gpu_type, held.allocation.gpu_count, job.ledger
        stretches, samples = self._stretches[job_id], ledger.processed_samples - held.samples
        done, batch = ledger.done_work, None if job.plan is None else job.plan.total_batch_size
        one = Stretch(kind, count, held.nodes, seconds, held.done, done, samples, batch)
        last = stretches[-1] if stretches else None
        if last is not None and _same_gpus(last, one):
            stretches[-1] = replace(
                one,
                seconds=last.seconds + seconds,
                begin=last.begin,
                samples=last.samples + samples,
                batch_size=last.batch_size if batch is None else batch,
            )
        else:
            stretches.append(one)
        gradient, known = job.agent.belief.gradient, self._gradients[job_id]
        if gradient is not None and (not known or known[-1][1] != gradient):
            known.append((done / job.total_work, gradient))

    def history(self, executor: SimulatedExecutor, arrivals: Sequence[PastArrival]) -> History:
        latest = sorted(executor.finished.values(), key=lambda job: -(job.finished_at or 0.0))
        ended, lives = latest[:MOST_ENDED], dict[LifeKey, PastLife]()
        curves = self._curves(ended)
        for model in catalog_models():
            life = _life([job for job in ended if job.spec.model == model], curves)
            life = life or published_life(model)
            if life is not None:
                lives[None, ("", model)] = life
        running = {job_id: tuple(self._stretches[job_id]) for job_id in executor.jobs}
        history = History(lives, (), arrivals, stretches=running)
        return replace(history, ended=self._ended(ended, history, curves))

    def _curves(self, ended: Sequence[SimulatedJob]) -> Mapping[JobId, Curve]:
        """Return the gradients of the latest jobs of each model, as a service reads them."""
        found, count = dict[JobId, Curve](), Counter[str]()
        for job in ended:
            count[job.spec.model] += 1
            if count[job.spec.model] <= MOST_CURVES:
                found[job.spec.id] = tuple(self._gradients[job.spec.id])
        return found

    def _ended(
        self, jobs: Sequence[SimulatedJob], history: History, curves: Mapping[JobId, Curve]
    ) -> Sequence[Ended]:
        courses = [
            Course(
                unseen_job(job.spec),
                history.life_of(job.spec),
                job.total_work,
                self._stretches[job.spec.id],
                curves.get(job.spec.id, ()),
            )
            for job in jobs
        ]
        tempos = tempos_of(courses, self._cluster, fitter=self._fitter)
        return [
            Ended(job.spec.owner, job.spec.model, _run_seconds(job), tempo, job.ledger.restarts)
            for job, tempo in zip(jobs, tempos, strict=True)
        ]


def _life(jobs: Sequence[SimulatedJob], curves: Mapping[JobId, Curve]) -> PastLife | None:
    """Return what jobs of a model measured, the latest first."""
    return together(
        PastLife(
            {kind: one.samples for kind, one in job.agent.belief.by_type.items()},
            (curves[job.spec.id],) if job.spec.id in curves else (),
        )
        for job in jobs
    )


def _same_gpus(one: Stretch, other: Stretch) -> bool:
    kinds = {(each.gpu_type, each.gpu_count, each.node_count) for each in (one, other)}
    return len(kinds) == 1 and one.end == other.begin


def _run_seconds(job: SimulatedJob) -> float:
    return (job.ledger.finished_at or 0.0) - (job.ledger.started_at or 0.0)
