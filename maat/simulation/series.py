"""The series of a run over time: its jobs, GPUs in use, efficiency, nodes in service.

All are exact step functions, worked out from the changes of jobs and nodes once the run is over.
Axes: S stretches, K moments, T GPU types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.simulation.failures import Outages
from maat.simulation.job_changes import WIDTH, Holding
from maat.simulation.simulated_job import SimulatedJob

DIGITS = 9  # of efficiencies: what is left of rounding would exceed 1
ROUNDING = 1e-9  # a sum that changes by less stays as it is


@dataclass(frozen=True, eq=False)
class Stretches:
    """The lives of jobs, cut where anything changes; shape (S,) each.

    Stretches of one job follow each other without gaps, from its submission to its finish, or to
    the end of the run. `job`: number of the job among the run's records. `gpu_type`: number among
    `RunSeries.types`, -1 while the job waits. `batch_size` (total; 0), `efficiency` (NaN) and
    `slowdown` (NaN) are known while it trains: neither in a wait nor in a restart. `efficiency`:
    EFFICIENCY of Pollux eq. 6, in (0, 1] for batches of M0 and more. `locality` x `variability`:
    the slowdown by placement, L x max V (PAL eq. 1), NaN while it waits; `slowdown`: true over
    nominal seconds of a step for all reasons.
    """

    job: IntArray
    start: FloatArray
    end: FloatArray
    gpu_type: IntArray
    gpu_count: IntArray
    node_count: IntArray
    batch_size: IntArray
    efficiency: FloatArray
    locality: FloatArray
    variability: FloatArray
    slowdown: FloatArray

    def __len__(self) -> int:
        return len(self.job)

    def chosen(self, which: np.ndarray) -> Stretches:
        """Return some of them: `which` is an index or a mask of shape (S,)."""
        return Stretches(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    @property
    def waits(self) -> Stretches:
        """Those in which a job has no GPUs."""
        return self.chosen(self.gpu_count == 0)


@dataclass(frozen=True, eq=False)
class GpusInUse:
    """GPUs in use from each time to the next: `times` (K,), `counts` (K, T).

    A GPU that jobs share counts once.
    """

    times: FloatArray
    counts: IntArray


@dataclass(frozen=True, eq=False)
class MeanEfficiency:
    """The cluster's statistical efficiency from each time to the next, shape (K,) each.

    `mean`: over the jobs that train, each counting once, as Pollux's figure 5 has it ("average
    cluster-wide statistical efficiency"; the paper names no weights). `by_gpu`: weighted by the
    GPUs of each job. Both are NaN while no job trains.
    """

    times: FloatArray
    mean: FloatArray
    by_gpu: FloatArray


@dataclass(frozen=True, eq=False)
class NodesInService:
    """Nodes and their GPUs in service from each time to the next: (K,), (K,), (K, T)."""

    times: FloatArray
    nodes: IntArray
    gpus: IntArray


@dataclass(frozen=True, eq=False)
class RunSeries:
    """What a run recorded over time. Times are seconds of the simulation.

    `jobs`: names, in the order of the run's records. `types`: of GPUs. `holdings`: by job, which
    GPUs it held from when on; empty unless jobs could share GPUs.
    """

    jobs: tuple[str, ...]
    types: tuple[str, ...]
    end_time: float
    stretches: Stretches
    nodes: NodesInService
    holdings: tuple[tuple[Holding, ...], ...] = ()
    gpu_type_of: IntArray | None = None

    @cached_property
    def gpus(self) -> GpusInUse:
        """GPUs in use over time, by type."""
        held = self._shared() if any(self.holdings) else self._unshared()
        times, steps = _stepwise(held.times, held.counts)
        return GpusInUse(times, np.round(steps).astype(np.int64))

    def _unshared(self) -> GpusInUse:
        """The changes of GPUs in use (unordered), of jobs that share none."""
        held = self.stretches.chosen(self.stretches.gpu_count > 0)
        counts = np.zeros((len(held), len(self.types)), dtype=np.int64)
        counts[np.arange(len(held)), held.gpu_type] = held.gpu_count
        return GpusInUse(np.concatenate([held.start, held.end]), np.concatenate([counts, -counts]))

    def _shared(self) -> GpusInUse:
        """The changes of GPUs in use (unordered): a GPU is in use while any job holds it."""
        gpu, time, change = self._gpu_changes()
        # Ends before starts at one moment would leave a gap of no length, which does no harm.
        order = np.lexsort((change, time, gpu))
        gpu, time, change = gpu[order], time[order], change[order]
        users = np.cumsum(change)
        begins, ends = (change > 0) & (users == 1), (change < 0) & (users == 0)
        kept = begins | ends
        counts = np.zeros((int(kept.sum()), len(self.types)), dtype=np.int64)
        if self.gpu_type_of is not None:
            counts[np.arange(len(counts)), self.gpu_type_of[gpu[kept]]] = np.where(begins, 1, -1)[
                kept
            ]
        return GpusInUse(time[kept], counts)

    def _gpu_changes(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Return GPU, time, and +1 where a job takes it or -1 where one gives it up."""
        gpus: list[int] = []
        times: list[float] = []
        changes: list[int] = []
        for held, until in zip(self.holdings, self._ends(), strict=True):
            ends = [*(later.since for later in held[1:]), until]
            for holding, end in zip(held, ends, strict=False):
                for gpu in holding.gpus:
                    gpus += (gpu, gpu)
                    times += (holding.since, max(end, holding.since))
                    changes += (1, -1)
        return np.array(gpus, dtype=np.int64), np.array(times), np.array(changes, dtype=np.int64)

    def _ends(self) -> list[float]:
        ends = np.zeros(len(self.jobs))
        np.maximum.at(ends, self.stretches.job, self.stretches.end)
        return list(ends.tolist())

    @cached_property
    def efficiency(self) -> MeanEfficiency:
        """The cluster's mean statistical efficiency over time."""
        training = self.stretches.chosen(self.stretches.batch_size > 0)
        gpus = training.gpu_count.astype(np.float64)
        each = np.column_stack(
            [np.ones(len(training)), training.efficiency, gpus, gpus * training.efficiency]
        )
        times, sums = _stepwise(
            np.concatenate([training.start, training.end]), np.concatenate([each, -each])
        )
        counted = np.round(sums[:, [0, 2]])
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(counted > 0, sums[:, [1, 3]] / counted, np.nan)
        mean, by_gpu = np.round(means, DIGITS).T
        return MeanEfficiency(times, mean, by_gpu)

    def of_job(self, name: str) -> Stretches:
        """Return the life of a job. Raises ValueError for a job that the run does not have."""
        number = self.jobs.index(name)
        first, last = np.searchsorted(self.stretches.job, [number, number + 1])
        return self.stretches.chosen(np.arange(first, last))

    @cached_property
    def placement_slowdown(self) -> FloatArray:
        """By job, L x max V (PAL eq. 1), the mean over the GPU time that it trained; shape (J,).

        NaN for a job that never trained.
        """
        training = self.stretches.chosen(self.stretches.batch_size > 0)
        weights = (training.end - training.start) * training.gpu_count
        count = len(self.jobs)
        lost = weights * training.locality * training.variability
        time = np.bincount(training.job, weights, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.bincount(training.job, lost, count) / np.where(time > 0, time, np.nan)


def run_series(
    jobs: Mapping[str, SimulatedJob], cluster: Cluster, outages: Outages, *, end_time: float
) -> RunSeries:
    """Work out the series of a run from what its jobs recorded. `jobs`: in the records' order."""
    recorded = [job.changes for job in jobs.values() if job.changes is not None]
    ends = [
        end_time if job.finished_at is None else job.finished_at
        for job in jobs.values()
        if job.changes is not None
    ]
    return RunSeries(
        jobs=tuple(jobs),
        types=tuple(cluster.type_names),
        end_time=end_time,
        stretches=_stretches([np.frombuffer(changes.rows) for changes in recorded], ends),
        nodes=nodes_in_service(cluster, outages, until=end_time),
        holdings=tuple(tuple(changes.holdings) for changes in recorded),
        gpu_type_of=cluster.gpu_type_of,
    )


def _stretches(recorded: Sequence[FloatArray], ends: Sequence[float]) -> Stretches:
    """Cut the rows of every job into stretches; those of no length are left out."""
    rows = np.concatenate([np.zeros(0), *recorded]).reshape(-1, WIDTH)
    counts = np.array([len(each) // WIDTH for each in recorded], dtype=np.int64)
    job = np.repeat(np.arange(len(counts)), counts)
    last = np.cumsum(counts) - 1
    start = rows[:, 0]
    end = np.append(start[1:], 0.0)[: len(start)]
    end[last] = ends
    kept = end > start
    time, kind, gpus, nodes, batch, efficiency, locality, variability, slowdown = rows[kept].T
    counted = (values.astype(np.int64) for values in (kind, gpus, nodes, batch))
    known = (
        np.where(values > 0, values, np.nan)
        for values in (np.round(efficiency, DIGITS), locality, variability, slowdown)
    )
    return Stretches(job[kept], time.copy(), end[kept], *counted, *known)


def nodes_in_service(cluster: Cluster, outages: Outages, *, until: float) -> NodesInService:
    """Return the nodes in service at 0 and from each failure or repair on."""
    failures = outages.between(-1.0, until)
    moments = {0.0} | {at for f in failures for at in (f.time, f.repaired_at) if at <= until}
    times = sorted(moments)
    usable = {
        node.id: (cluster.type_index[node.gpu_type], node.available_count) for node in cluster.nodes
    }
    nodes, gpus = [], np.tile(cluster.usable_gpus, (len(times), 1)).astype(np.int64)
    for row, time in enumerate(times):
        down = outages.down_at(time)
        nodes.append(len(cluster.nodes) - len(down))
        for node in down:
            kind, count = usable[node]
            gpus[row, kind] -= count
    return NodesInService(np.array(times), np.array(nodes, dtype=np.int64), gpus)


def _stepwise(times: FloatArray, changes: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Sum changes (K', X) up over time: the moments of change (K,), and the sums from there on."""
    if not len(times):
        return np.zeros(0), np.zeros((0, changes.shape[1]))
    moments, at = np.unique(times, return_inverse=True)
    summed = np.column_stack([np.bincount(at, each, len(moments)) for each in changes.T])
    real = (np.abs(summed) > ROUNDING).any(axis=1)
    return moments[real], np.cumsum(summed[real], axis=0)
