"""How many nodes to rent (Pollux section 5.4.1).

A policy takes the cluster as it is. Only its size is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.bootstrap import Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ParameterError
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.parameters import knob
from maat.scheduling.throughput import step_seconds
from maat.vocabulary import WorkloadKind


@dataclass(frozen=True)
class ScalingInput:
    """What an autoscaler sees. Raises ClusterError if the nodes are not alike.

    Attributes:
        jobs: Those that want GPUs.
        cluster: All nodes that may be rented, alike; they are rented in this order.
        node_count: How many nodes are rented now, at least 1.
        recent_shares: `Autoscaler.share` at the decisions since the nodes last changed, oldest
            first, this one included.
    """

    jobs: tuple[Job, ...]
    cluster: Cluster
    node_count: int
    projection: Projection = project_by_profile
    recent_shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_alike(self.cluster)

    @property
    def gpus_per_node(self) -> int:
        return self.cluster.nodes[0].gpu_count

    @property
    def node_counts(self) -> IntArray:
        """Return 1, 2, ... up to all nodes, shape (N,)."""
        return np.arange(1, len(self.cluster.nodes) + 1)


def check_alike(cluster: Cluster) -> None:
    """Raise ClusterError if the nodes differ in GPU type or size."""
    if len({(node.gpu_type, node.gpu_count) for node in cluster.nodes}) > 1:
        raise ClusterError(
            "has nodes that are not alike",
            field="cluster",
            value=cluster.describe(),
            remedy="Rent nodes of one type and size, such as t4=16x4.",
        )


class Ideal(StrEnum):
    """The unit of perfect scaling: n times one GPU, as in the formula, or one node."""

    ONE_GPU = "one-gpu"
    ONE_NODE = "one-node"


class FastBatch(StrEnum):
    """The batch size that maximises throughput, ignoring statistical efficiency.

    HELD: the largest that the GPUs hold. MOST_THROUGHPUT: that of most samples per second,
    accumulated if the GPUs hold less.
    """

    HELD = "held"
    MOST_THROUGHPUT = "most-throughput"


class Autoscaler(Protocol):
    """Chooses how many nodes to rent, and the batch with which jobs train there."""

    @property
    def name(self) -> str: ...
    def share(self, scaling: ScalingInput) -> float:
        """Return the share of the ideal that the present nodes reach; kept in `recent_shares`."""
        ...

    def node_count(self, scaling: ScalingInput) -> int: ...

    def batch(self, scaling: ScalingInput, job: Job, *, gpu_count: int) -> BatchPlan | None:
        """Return the plan of `job` on so many GPUs of full nodes.

        None leaves the choice to the job's agent.
        """
        ...


@dataclass(frozen=True)
class GoodputAutoscaler:
    """Adds nodes while goodput scales well.

    If the nodes reach more than the share U of ideal goodput, it grows to where they reach about
    L. The published simulator averages the share over 15 decisions and gives nodes back, too: U
    0.65, L 0.5, `give_back_below` 0.35 (`PUBLISHED_RULE`).
    """

    upper: float = knob(
        2 / 3,
        "U: share of ideal goodput above which nodes are added.",
        source="Pollux section 5.4.1",
        minimum=0,
        maximum=1,
    )
    lower: float = knob(
        1 / 2,
        "L: share of ideal goodput down to which nodes are added.",
        source="Pollux section 5.4.1",
        minimum=0,
        maximum=1,
    )
    ideal: Ideal = knob(
        Ideal.ONE_GPU, "What perfect scaling is counted from.", source="Pollux section 5.4.1"
    )
    window: int = knob(
        1,
        "Decisions over which the share is averaged, since the nodes last changed.",
        source="published simulator: 15",
        minimum=1,
        maximum=1440,
    )
    give_back_below: float = knob(
        0.0,
        "Share of ideal goodput below which nodes are given back, to where it is about L; 0: none.",
        source="published simulator: 0.35",
        minimum=0,
        maximum=1,
    )
    name: str = "goodput"

    def __post_init__(self) -> None:
        _check_order(self.upper, self.lower)

    def share(self, scaling: ScalingInput) -> float:
        return float(self._shares(scaling)[scaling.node_count - 1])

    def node_count(self, scaling: ScalingInput) -> int:
        shares = self._shares(scaling)
        recent = scaling.recent_shares or (float(shares[scaling.node_count - 1]),)
        if len(recent) < self.window:
            return scaling.node_count
        average = float(np.mean(recent[-self.window :]))
        if average < self.give_back_below:
            return 1 + int(np.argmin(np.abs(shares[: scaling.node_count] - self.lower)))
        return _grown(scaling, shares, average, upper=self.upper, lower=self.lower)

    def _shares(self, scaling: ScalingInput) -> FloatArray:
        return share_of_ideal(scaling, goodput_on, ideal=self.ideal)

    def batch(self, scaling: ScalingInput, job: Job, *, gpu_count: int) -> BatchPlan | None:
        return None


@dataclass(frozen=True)
class ThroughputAutoscaler:
    """The same rule in samples per second (Or et al.).

    It ignores that samples of larger batches have less value.
    """

    upper: float = knob(
        2 / 3,
        "Share of ideal throughput above which nodes are added.",
        source="as goodput's",
        minimum=0,
        maximum=1,
    )
    lower: float = knob(
        1 / 2,
        "Share of ideal throughput down to which nodes are added.",
        source="as goodput's",
        minimum=0,
        maximum=1,
    )
    ideal: Ideal = knob(
        Ideal.ONE_GPU, "What perfect scaling is counted from.", source="as goodput's"
    )
    fast_batch: FastBatch = knob(FastBatch.HELD, "What batch jobs train with.")
    name: str = "throughput"

    def __post_init__(self) -> None:
        _check_order(self.upper, self.lower)

    def share(self, scaling: ScalingInput) -> float:
        return float(self._shares(scaling)[scaling.node_count - 1])

    def node_count(self, scaling: ScalingInput) -> int:
        shares = self._shares(scaling)
        present = float(shares[scaling.node_count - 1])
        return _grown(scaling, shares, present, upper=self.upper, lower=self.lower)

    def _shares(self, scaling: ScalingInput) -> FloatArray:
        speed = throughput_held_on if self.fast_batch is FastBatch.HELD else most_throughput_on
        return share_of_ideal(scaling, speed, ideal=self.ideal)

    def batch(self, scaling: ScalingInput, job: Job, *, gpu_count: int) -> BatchPlan | None:
        gpus = np.array([gpu_count])
        if self.fast_batch is FastBatch.HELD:
            each = int(largest_batch_per_gpu(job, scaling.cluster.type_names[0], gpus)[0])
            return BatchPlan(gpu_count * each, each, 0)
        pairs = _pairs(scaling, [_worth_alike(job)], gpus, -(-gpus // scaling.gpus_per_node))
        return pairs.plans.plan(0) if pairs.goodput[0] > 0 else None


@dataclass(frozen=True)
class FixedNodes:
    """The same number of nodes from beginning to end; jobs choose their batches."""

    nodes: int

    @property
    def name(self) -> str:
        return f"fixed-{self.nodes}"

    def share(self, scaling: ScalingInput) -> float:
        return 1.0

    def node_count(self, scaling: ScalingInput) -> int:
        return self.nodes

    def batch(self, scaling: ScalingInput, job: Job, *, gpu_count: int) -> BatchPlan | None:
        return None


def _check_order(upper: float, lower: float) -> None:
    if upper < lower:
        raise ParameterError(
            f"is below the lower share, {lower:g}",
            field="upper",
            value=upper,
            remedy="Give an upper share no less than the lower one.",
        )


PUBLISHED_RULE = GoodputAutoscaler(upper=0.65, lower=0.5, window=15, give_back_below=0.35)
"""Of the published simulator (`autoscale` in simulator.py, thresholds in pollux.py)."""

Speed = Callable[[ScalingInput, IntArray, IntArray], FloatArray]


def share_of_ideal(
    scaling: ScalingInput, speed: Speed, *, ideal: Ideal = Ideal.ONE_GPU
) -> FloatArray:
    """Return speed on n nodes as a share of ideal speed, the mean over jobs, (N,).

    Each of J jobs has an equal share of the nodes. Ideal is the speed of one GPU (or one node)
    times their GPUs (or nodes). The mean is over jobs whose speed is known; zero if there is none:
    no node is rented for it.
    """
    jobs = max(len(scaling.jobs), 1)
    unit = 1 if ideal is Ideal.ONE_GPU else scaling.gpus_per_node
    gpus = np.maximum(scaling.node_counts * scaling.gpus_per_node // jobs, 1)
    nodes = -(-gpus // scaling.gpus_per_node)
    several, alone = (
        speed(scaling, gpus, nodes),
        speed(scaling, np.array([unit]), np.ones(1, dtype=np.int64)),
    )
    share = np.divide(several * unit, alone * gpus, out=np.zeros_like(several), where=alone > 0)
    known = share[alone[:, 0] > 0]
    return known.mean(axis=0) if len(known) else np.zeros(len(gpus))


def goodput_on(scaling: ScalingInput, gpus: IntArray, nodes: IntArray) -> FloatArray:
    """Return the best goodput of every job on so many GPUs, (K,) -> (J, K).

    max GOODPUT over batch sizes (Pollux eq. 13); zero if the speed is unknown.
    """
    return _goodput(scaling, scaling.jobs, gpus, nodes)


def most_throughput_on(scaling: ScalingInput, gpus: IntArray, nodes: IntArray) -> FloatArray:
    """Return the best throughput of every job on so many GPUs, (K,) -> (J, K).

    max THROUGHPUT over batch sizes, with accumulation; zero if the speed is unknown.
    """
    return _goodput(scaling, [_worth_alike(job) for job in scaling.jobs], gpus, nodes)


def throughput_held_on(scaling: ScalingInput, gpus: IntArray, nodes: IntArray) -> FloatArray:
    """Return samples/s with the largest batch that each GPU holds, (K,) -> (J, K).

    Zero if the speed is unknown.
    """
    gpu_type = scaling.cluster.type_names[0]
    found = np.zeros((len(scaling.jobs), len(gpus)))
    for row, job in enumerate(scaling.jobs):
        known = job.belief.by_type.get(gpu_type)
        if known is not None:
            batch = largest_batch_per_gpu(job, gpu_type, gpus)
            wide = (nodes.astype(np.float64), gpus.astype(np.float64))
            found[row] = (
                gpus
                * batch
                / step_seconds(known.parameters, batch, node_count=wide[0], replica_count=wide[1])
            )
    return found


def _goodput(
    scaling: ScalingInput, jobs: Sequence[Job], gpus: IntArray, nodes: IntArray
) -> FloatArray:
    pairs = _pairs(scaling, jobs, gpus, nodes)
    return np.where(pairs.known, pairs.goodput, 0.0).reshape(len(jobs), len(gpus))


def _pairs(scaling: ScalingInput, jobs: Sequence[Job], gpus: IntArray, nodes: IntArray) -> Pairs:
    """Evaluate every job on every number of GPUs, job by job."""
    row = np.repeat(np.arange(len(jobs)), len(gpus))
    return evaluate_pairs(
        jobs,
        scaling.cluster,
        job=row,
        gpu_type=np.zeros_like(row),
        gpu_count=np.tile(gpus, len(jobs)),
        node_count=np.tile(nodes, len(jobs)),
        column=np.zeros_like(row),
        projection=scaling.projection,
    )


def _worth_alike(job: Job) -> Job:
    """Return the job as if a sample had the same value in any batch.

    Its goodput is then its throughput.
    """
    return replace(job, spec=replace(job.spec, workload_kind=WorkloadKind.BATCH_INFERENCE))


def largest_batch_per_gpu(job: Job, gpu_type: str, gpus: IntArray) -> FloatArray:
    """Return the samples that a GPU holds, in the shape of `gpus`.

    Fewer if so many GPUs together would exceed the job's largest batch.
    """
    held = job.spec.memory[gpu_type].largest_per_gpu
    return np.maximum(np.minimum(held, job.spec.max_batch_size // gpus), 1).astype(np.float64)


def _grown(
    scaling: ScalingInput, shares: FloatArray, present: float, *, upper: float, lower: float
) -> int:
    """Return the node count: as now, or more if the present share is above `upper`.

    More is the number, not below the present one, whose share is nearest to `lower`.
    """
    now = scaling.node_count
    if present <= upper:
        return now
    return now + int(np.argmin(np.abs(shares[now - 1 :] - lower)))
