"""Hypothesis strategies for the input of a scheduling round.

Uneven clusters, jobs of every kind, allocations, and limits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.limits import Limit, LimitKind, capacity_limits
from maat.scheduling.pins import pinned_grants
from maat.scheduling.regimes import DeclaredRegimes
from maat.scheduling.reservations import Reservation, reservation_limits
from maat.scheduling.rounds import RequiredStay, RoundInput
from maat.scheduling.stability import Stability, required_stays
from maat.scheduling.throughput import step_seconds
from maat.vocabulary import Adaptivity, WorkloadKind

TYPES = ("t4", "rtx", "a100", "v100")
TENANTS = ("default", "vision", "speech")
CLASSES = ("A", "B")
NOW = 10_000.0


def _one_in(number: int) -> SearchStrategy[bool]:
    return st.integers(1, number).map(lambda drawn: drawn == number)


@st.composite
def clusters(draw: DrawFn, *, jobs_per_gpu: int = 1) -> Cluster:
    """One to four types of uneven nodes, some or all of whose GPUs are drained.

    `jobs_per_gpu`: how many jobs may share a GPU.
    """
    nodes = []
    for gpu_type in draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4, unique=True)):
        for number, count in enumerate(
            draw(st.lists(st.sampled_from((1, 2, 3, 4, 6, 8, 8)), min_size=1, max_size=4))
        ):
            drained = (
                draw(st.frozensets(st.integers(0, count - 1))) if draw(_one_in(4)) else frozenset()
            )
            nodes.append(Node(f"{gpu_type}-{number}", gpu_type, count, drained))
    cluster = Cluster.of(nodes, jobs_per_gpu=jobs_per_gpu)
    return (
        replace(cluster, scores=draw(_scores(cluster.gpu_count))) if draw(_one_in(3)) else cluster
    )


def _scores(gpu_count: int) -> SearchStrategy[dict[str, tuple[float, ...]]]:
    """How slow each GPU is for a class or two of jobs."""
    slowness = st.lists(
        st.sampled_from((0.9, 0.95, 1.0, 1.05, 2.8)), min_size=gpu_count, max_size=gpu_count
    )
    return st.dictionaries(st.sampled_from(CLASSES), slowness.map(tuple), min_size=1)


def parameters() -> SearchStrategy[FloatArray]:
    """Throughput parameters, shape (7,), that cannot be written to."""
    compute = st.floats(1e-3, 1.0)
    sync = st.floats(1e-4, 0.5)
    return st.tuples(
        compute, st.floats(1e-5, 0.05), sync, sync, sync, sync, st.floats(1.0, 10.0)
    ).map(_frozen)


def _frozen(values: tuple[float, ...]) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


@st.composite
def type_beliefs(draw: DrawFn, memory: MemoryLimits) -> TypeBelief:
    """What is known of one GPU alone, or of several, with exact step times."""
    model = draw(parameters())
    shapes = [(1, 1), *draw(st.sampled_from(([], [], [(1, 2)], [(1, 4), (2, 8)])))]
    samples = []
    for nodes, replicas in shapes:
        batch = memory.largest_per_gpu
        step = step_seconds(
            model,
            np.asarray(float(batch)),
            node_count=np.asarray(nodes),
            replica_count=np.asarray(replicas),
        )
        samples.append(Sample(nodes, replicas, batch, float(step), 0.0))
    return TypeBelief(tuple(samples), model)


@st.composite
def beliefs(draw: DrawFn, spec: JobSpec) -> Belief:
    """Nothing known, or something of some of the types, with or without gradients."""
    known = draw(st.sets(st.sampled_from(sorted(spec.memory))))
    by_type = {name: draw(type_beliefs(spec.memory[name])) for name in sorted(known)}
    gradient = draw(
        st.none() | st.builds(GradientStatistics, st.floats(0.0, 10.0), st.floats(0.0, 100.0))
    )
    peak = max((belief.largest_replica_count for belief in by_type.values()), default=0)
    return Belief(
        by_type, gradient if by_type else None, draw(st.sampled_from((peak, 0, 2 * peak)))
    )


@st.composite
def job_specs(draw: DrawFn, job_id: str, cluster: Cluster) -> JobSpec:
    """Any declaration, also one that asks for types or GPUs that the cluster lacks.

    Every adaptivity, and replicas of several GPUs.
    """
    adaptivity = draw(st.sampled_from(Adaptivity))
    initial = draw(st.sampled_from((8, 20, 128)))
    some = st.sets(st.sampled_from((*cluster.type_names, "elsewhere")), min_size=1)
    names = draw(st.just({*cluster.type_names}) | some)
    smallest = draw(st.sampled_from((1, 4, 32)))
    memory = {
        name: MemoryLimits(smallest, smallest * draw(st.sampled_from((1, 8, 64))))
        for name in sorted(names)
    }
    replica = (
        {name: draw(st.sampled_from((1, 2, 3, 4))) for name in sorted(names)}
        if draw(_one_in(4))
        else {}
    )
    low = draw(st.sampled_from((1, 1, 1, 1, 1, 2, 2, 3, 4, 40)))
    high = draw(st.none() | st.integers(low, low + 12))
    count = draw(st.integers(low, high if high is not None else low + 9))
    kind = draw(st.sampled_from((WorkloadKind.TRAINING, WorkloadKind.TRAINING, *WorkloadKind)))
    promised = (
        draw(st.sampled_from((1e-3, 0.1, 1.0, 10.0)))
        if kind is WorkloadKind.LATENCY_INFERENCE
        else None
    )
    fixed = adaptivity is not Adaptivity.ADAPTIVE or promised is not None
    return JobSpec(
        id=job_id,
        model=draw(st.sampled_from(("vision", "speech"))),
        submitted_at=draw(st.floats(0.0, NOW)),
        work=1e6,
        initial_batch_size=initial,
        max_batch_size=initial * draw(st.sampled_from((1, 4, 32))),
        memory=memory,
        tenant=draw(st.sampled_from(TENANTS)),
        adaptivity=adaptivity,
        gpu_count=count if adaptivity is Adaptivity.RIGID else draw(st.sampled_from((None, count))),
        min_gpus=low,
        max_gpus=high,
        batch_size=draw(st.sampled_from((initial, 4 * initial) if fixed else (None, 4 * initial))),
        preemptible=not draw(_one_in(6)),
        gpu_types=tuple(sorted(names)[:1]) if draw(_one_in(5)) else None,
        gpus_per_replica=replica,
        restart_seconds=draw(st.sampled_from((0.0, 30.0, 250.0))),
        weight=draw(st.sampled_from((1.0, 1.0, 0.25, 3.0))),
        workload_kind=kind,
        promised_seconds=promised,
        regimes=DeclaredRegimes(1e4, (initial, 4 * initial))
        if adaptivity is Adaptivity.RIGID and draw(_one_in(3))
        else None,
        variability_class=draw(st.sampled_from((None, *CLASSES))),
        locality_penalty=draw(st.sampled_from((1.0, 1.0, 1.7))),
    )


@st.composite
def job_lists(draw: DrawFn, cluster: Cluster, *, most: int = 8) -> tuple[Job, ...]:
    """Up to `most` jobs; some hold GPUs of one type, no two the same GPU.

    A held GPU may have been drained since.
    """
    free: dict[str, list[int]] = {
        name: np.flatnonzero(cluster.gpu_type_of == t).tolist()
        for name, t in cluster.type_index.items()
    }
    jobs = []
    for number in range(draw(st.integers(0, 3) | st.integers(2, most))):
        spec = draw(job_specs(f"job-{number}", cluster))
        allocation = draw(_allocations(spec, free))
        jobs.append(
            Job(
                spec=spec,
                belief=draw(beliefs(spec)),
                remaining_work=draw(st.floats(0.0, 1e6)),
                allocation=allocation,
                restarts=draw(st.integers(0, 3)),
                restarting=allocation is not None and draw(_one_in(4)),
                started_at=None if allocation is None else spec.submitted_at,
                epochs_begun={}
                if spec.regimes is None
                else dict(zip(spec.regimes.batch_sizes, draw(_epochs()), strict=False)),
            )
        )
    return tuple(jobs)


def _epochs() -> SearchStrategy[list[int]]:
    """Epochs begun at some of a job's sizes, at least one of them where any."""
    return st.lists(st.integers(1, 60), max_size=2)


@st.composite
def _allocations(draw: DrawFn, spec: JobSpec, free: dict[str, list[int]]) -> Allocation | None:
    counts = [
        (name, n)
        for name in free
        if spec.may_use(name)
        for n in _counts(spec, name)
        if n <= len(free[name])
    ]
    if not counts or draw(st.booleans()):
        return None
    name, count = draw(st.sampled_from(counts))
    gpus = draw(st.sampled_from((free[name][:count], free[name][-count:])))
    free[name] = [gpu for gpu in free[name] if gpu not in gpus]
    return Allocation(name, tuple(gpus))


def _counts(spec: JobSpec, gpu_type: str) -> list[int]:
    """Some GPU counts that the job may hold of a type."""
    unit = spec.replica_gpus(gpu_type)
    high = 8 if spec.max_gpus is None else min(spec.max_gpus, 8)
    counts = (spec.requested_gpus,) if spec.is_rigid else range(spec.min_gpus, high + 1)
    return [n for n in counts if n % unit == 0]


@st.composite
def quotas(draw: DrawFn, cluster: Cluster) -> tuple[Limit, ...]:
    """Up to two limits of a tenant, on one type or on all together.

    A limit may be below what the tenant holds.
    """
    found = {}
    for _ in range(draw(st.integers(0, 2))):
        tenant, gpu_type = (
            draw(st.sampled_from(TENANTS)),
            draw(st.none() | st.sampled_from(cluster.type_names)),
        )
        name = f"quota:{tenant}:{gpu_type or 'all'}"
        found[name] = Limit(
            name, LimitKind.QUOTA, draw(st.integers(0, 8)), gpu_type=gpu_type, tenant=tenant
        )
    return tuple(found.values())


@st.composite
def reserved(draw: DrawFn, cluster: Cluster, jobs: tuple[Job, ...]) -> tuple[Reservation, ...]:
    """Up to three reservations for tenants and jobs.

    Some are over or still to come, some are for more GPUs than there are.
    """
    found = []
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2, 3)))):
        gpu_type, count = draw(st.sampled_from(cluster.type_names)), draw(st.integers(1, 12))
        start, end = draw(
            st.sampled_from(((0.0, np.inf), (NOW, NOW + 60.0), (0.0, NOW), (NOW + 60.0, np.inf)))
        )
        job_id = draw(st.none() | st.sampled_from([job.id for job in jobs])) if jobs else None
        tenant = draw(st.sampled_from(TENANTS)) if job_id is None else None
        found.append(
            Reservation(gpu_type, count, tenant=tenant, job_id=job_id, start=start, end=end)
        )
    return tuple(found)


@st.composite
def required_stays_of(
    draw: DrawFn, cluster: Cluster, jobs: tuple[Job, ...]
) -> dict[str, RequiredStay]:
    """Jobs that must stay by bounds that are loose, tight or both."""
    stability = Stability(
        draw(st.sampled_from((None, None, 60.0, 1800.0))), draw(st.sampled_from((None, None, 1, 3)))
    )
    lately = st.sampled_from((NOW - 30.0, NOW - 1000.0, NOW - 5000.0))
    seen = [
        replace(job, held_since=draw(lately), moved_at=tuple(draw(st.lists(lately, max_size=3))))
        for job in jobs
    ]
    return dict(required_stays(seen, cluster, now=NOW, stability=stability))


@st.composite
def round_inputs(draw: DrawFn) -> RoundInput:
    """Everything together, with pins as the round loop makes them."""
    cluster = draw(clusters(jobs_per_gpu=2 if draw(_one_in(5)) else 1))
    jobs = draw(job_lists(cluster))
    stays = draw(required_stays_of(cluster, jobs))
    return RoundInput(
        now=NOW,
        round_number=draw(st.integers(1, 100)),
        round_seconds=60.0,
        jobs=jobs,
        cluster=cluster,
        limits=capacity_limits(cluster)
        + draw(quotas(cluster))
        + reservation_limits(cluster, draw(reserved(cluster, jobs)), NOW),
        pinned=pinned_grants(jobs, cluster, stays),
        stays=stays,
    )
