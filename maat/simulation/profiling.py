"""Profiling: the step times that are revealed of a simulated job before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from maat.models.truth import Shape, Truth
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import sia_configurations
from maat.scheduling.errors import InputError
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobSpec
from maat.simulation.simulated_job import SimulatedJob
from maat.vocabulary import ProfilingMode

PROFILED_BATCH_SIZES = 10  # Sia section 3.2: typically ten per GPU type
ORACLE_BATCH_SIZES = 6


def revealed_samples(
    job: SimulatedJob, kind: str, mode: ProfilingMode, cluster: Cluster
) -> list[Sample]:
    """Return the samples that a profiling mode reveals of a job on one GPU type."""
    match mode:
        case ProfilingMode.NO_PROFILE:
            return []
        case ProfilingMode.REQUEST_ORACLE:
            return profile_request(job, kind, _filled_shapes(job.spec, kind, cluster))
        case ProfilingMode.REQUESTED:
            return requested_pace(job, kind, cluster)
        case ProfilingMode.ORACLE:
            return [
                sample
                for shape in _all_shapes(job.spec, kind, cluster)
                for sample in profile_shape(job, kind, shape, ORACLE_BATCH_SIZES)
            ]
        case ProfilingMode.BOOTSTRAP | ProfilingMode.TWO_COUNTS:
            return [
                sample
                for shape in profiled_shapes(job.spec, kind, mode, cluster)
                for sample in profile_shape(job, kind, shape, PROFILED_BATCH_SIZES)
            ]


def profiled_shapes(spec: JobSpec, kind: str, mode: ProfilingMode, cluster: Cluster) -> list[Shape]:
    """Return the shapes on which the cluster profiles a job on one GPU type, one after the other.

    One replica, and with TWO_COUNTS two (Sia section 5.7), on one node if it has room for them.
    Only one replica where the job may not have two of that type. None in other modes.
    """
    unit = spec.replica_gpus(kind)
    if mode is ProfilingMode.BOOTSTRAP:
        return [(unit,)]
    if mode is not ProfilingMode.TWO_COUNTS:
        return []
    index = cluster.type_index[kind]
    limits = (
        spec.max_gpus,
        spec.most_gpus_by_type.get(kind),
        int(cluster.usable_gpus[index]),
    )
    two = filled_shape(2 * unit, int(cluster.gpus_per_node[index]))
    fits = all(limit is None or 2 * unit <= limit for limit in limits)
    return [(unit,), two] if fits else [(unit,)]


def _filled_shapes(spec: JobSpec, kind: str, cluster: Cluster) -> list[Shape]:
    """Every number of GPUs that the job may have, nodes filled one after the other."""
    index = cluster.type_index[kind]
    per_node, most = int(cluster.gpus_per_node[index]), int(cluster.usable_gpus[index])
    unit = spec.replica_gpus(kind)
    counts = range(unit, min(most, spec.max_gpus or most) + 1, unit)
    return [filled_shape(count, per_node) for count in counts]


def filled_shape(gpu_count: int, per_node: int) -> Shape:
    """Return the GPUs on each node, nodes filled one after the other."""
    whole, rest = divmod(gpu_count, per_node)
    return (per_node,) * whole + ((rest,) if rest else ())


def _all_shapes(spec: JobSpec, kind: str, cluster: Cluster) -> list[Shape]:
    """Every configuration of the type, up to the most GPUs on which the truth was measured."""
    most = spec.most_gpus_by_type.get(kind, int(cluster.usable_gpus[cluster.type_index[kind]]))
    return [
        (c.gpu_count // c.node_count,) * c.node_count
        for c in sia_configurations(cluster).configurations
        if c.gpu_type == kind and c.gpu_count <= most
    ]


def requested_pace(job: SimulatedJob, kind: str, cluster: Cluster) -> list[Sample]:
    """Return the true step time, calibration included, of the job's own request.

    The request's GPU count and batch size run on as few nodes as possible. Empty if the job cannot
    run so on this type, or if the step time was not measured.
    """
    spec, truth, unit = job.spec, job.truth, job.spec.replica_gpus(kind)
    index, count = cluster.type_index[kind], job.spec.requested_gpus
    per_node = int(cluster.gpus_per_node[index])
    if not per_node or count % unit or count > cluster.usable_gpus[index]:
        return []
    shape, replicas = filled_shape(count, per_node), count // unit
    total = truth.initial_batch_size if spec.batch_size is None else spec.batch_size
    batch = job.agent.plan_for(total, kind, gpu_count=count, replicas=replicas).per_gpu_batch_size
    try:
        time = truth.step(kind, shape, batch)
    except InputError:
        return []
    slow = truth.slowdown
    return [Sample(len(shape), replicas, batch, time.step_seconds * slow, time.sync_seconds * slow)]


def profile_shape(job: SimulatedJob, kind: str, shape: Shape, many: int) -> list[Sample]:
    """Return step times on one shape, at `many` batch sizes.

    The batch sizes go from the smallest to the largest that fits memory, in equal ratios. A job
    that sets its own batch sizes is profiled at those.
    """
    truth, replicas = job.truth, sum(shape) // job.spec.replica_gpus(kind)
    samples = []
    for batch in _batch_sizes(job.spec, truth, kind, sum(shape), many):
        time = truth.step(kind, shape, batch)
        samples.append(Sample(len(shape), replicas, batch, time.step_seconds, time.sync_seconds))
    return samples


def _batch_sizes(spec: JobSpec, truth: Truth, kind: str, gpu_count: int, many: int) -> list[int]:
    low, high = truth.smallest_per_gpu(kind), truth.largest_per_gpu(kind, gpu_count)
    if low > high:
        return []
    if spec.regimes is not None:
        own = {-(-size // spec.requested_gpus) for size in spec.regimes.batch_sizes}
        return sorted(batch for batch in own if low <= batch <= high)
    ratio = (high / low) ** (1 / max(many - 1, 1))
    return sorted({min(round(low * ratio**i), high) for i in range(many)})


def profile_request(job: SimulatedJob, kind: str, shapes: Iterable[Shape]) -> list[Sample]:
    """Return step times at the requested batch size, on each measured shape."""
    samples = []
    for shape in shapes:
        replicas = sum(shape) // job.spec.replica_gpus(kind)
        batch = job.agent.plan_for(
            job.spec.requested_batch_size, kind, gpu_count=sum(shape), replicas=replicas
        ).per_gpu_batch_size
        if batch >= job.truth.smallest_per_gpu(kind):
            with suppress(InputError):
                time = job.truth.step(kind, shape, batch)
                samples.append(
                    Sample(len(shape), replicas, batch, time.step_seconds, time.sync_seconds)
                )
    return samples
