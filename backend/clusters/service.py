"""Makes and changes clusters and nodes.

Checks requests against the engine's own rules; commits nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlmodel import Session

from backend.clocktime import reanchor
from backend.clusters.changes import (
    record_cluster,
    record_nodes,
    shown_cluster,
)
from backend.clusters.executor_checks import checked_executor
from backend.clusters.interference import stored_interference
from backend.clusters.models import Cluster, Node
from backend.clusters.notes import check_types
from backend.clusters.repository import get_cluster, name_is_taken, nodes_of
from backend.clusters.sharing import check_executor_shares, check_nothing_shared
from backend.clusters.topology import engine_cluster
from backend.moments import moment_of
from backend.problems import Conflict, FieldError, Invalid, invalid_input
from backend.web.conditional import check_version, check_version_if_sent
from maat.api.clusters import (
    MAX_CLUSTER_GPUS,
    MAX_NODES,
    ClusterBody,
    ClusterChanges,
    NodeBody,
)
from maat.scheduling import cluster as engine
from maat.scheduling.errors import ClusterError, InputError, ParameterError, UnknownNameError
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.registry import Registry
from maat.vocabulary import ExecutorKind

T = TypeVar("T")

PARTS = ("policy", "policy_parameters", "placer", "placer_parameters")
"""The fields of a cluster, and of a change of one, that say what decides and what places."""


@dataclass(frozen=True)
class PreparedCluster:
    """A checked cluster and its nodes, ready to store."""

    row: Cluster
    nodes: list[Node]


def prepare_cluster(body: ClusterBody) -> PreparedCluster:
    """Check everything that needs no database. Raises Invalid naming the field."""
    policy_seconds = check_parts(
        body.policy, body.policy_parameters, body.placer, body.placer_parameters
    )
    placer = body.placer or suiting_placer(body.policy)
    executor_parameters = checked_executor(body)
    _check_speed(body.executor.value, body.speed)
    check_executor_shares(body.executor.value, body.jobs_per_gpu)
    given = body.model_dump(exclude={"nodes", "shape", "round_seconds"})
    given |= {"executor": body.executor.value, "executor_parameters": executor_parameters}
    given["placer"] = placer
    given["interference"] = stored_interference(
        body.interference, executor=body.executor.value, jobs_per_gpu=body.jobs_per_gpu
    )
    seconds = policy_seconds if body.round_seconds is None else body.round_seconds
    cluster = Cluster(**given, round_seconds=seconds)
    nodes = [] if cluster.finds_nodes else _declared_nodes(body)
    _check_types(cluster, nodes, "/nodes" if body.shape is None else "/shape")
    return PreparedCluster(cluster, nodes)


def store_cluster(session: Session, prepared: PreparedCluster) -> Cluster:
    """Store the cluster; its time begins now. Raises Conflict if the name is taken."""
    cluster = prepared.row
    if name_is_taken(session, cluster.name):
        raise Conflict(f"There is already a cluster named {cluster.name!r}.")
    now = moment_of(session)
    cluster.epoch = cluster.anchor_wall = cluster.created_at = now.wall
    reanchor(cluster, now)
    session.add(cluster)
    session.flush()
    _add(session, cluster, prepared.nodes, first_position=0)
    record_cluster(session, "create cluster", cluster, {})
    return cluster


def create_cluster(session: Session, body: ClusterBody) -> Cluster:
    """Check and store a cluster.

    Raises Invalid naming the field, Conflict if the name is taken.
    """
    return store_cluster(session, prepare_cluster(body))


def check_changes(session: Session, cluster_id: str, changes: ClusterChanges) -> None:
    """Check a change before any row is locked.

    Building a policy may load its code first.
    """
    wanted_parts(
        get_cluster(session, cluster_id), changes.model_dump(exclude_unset=True, exclude_none=True)
    )


def change_cluster(
    session: Session, cluster_id: str, changes: ClusterChanges, if_match: str | None
) -> Cluster:
    """Set what was given. Values equal to the present ones make no new version."""
    cluster = get_cluster(session, cluster_id, lock=True)
    check_version(if_match, cluster.version, cluster.latest_round)
    given = changes.model_dump(exclude_unset=True)  # null takes a bound away
    given |= wanted_parts(cluster, given)
    given["interference"] = stored_interference(
        given.get("interference", cluster.interference),
        executor=cluster.executor,
        jobs_per_gpu=given.get("jobs_per_gpu", cluster.jobs_per_gpu),
    )
    if given.get("name", cluster.name) != cluster.name and name_is_taken(session, given["name"]):
        raise Conflict(f"There is already a cluster named {given['name']!r}.")
    changed = {name: value for name, value in given.items() if value != getattr(cluster, name)}
    if not changed:
        return cluster
    before = shown_cluster(cluster)
    if "jobs_per_gpu" in changed:
        check_executor_shares(cluster.executor, changed["jobs_per_gpu"])
    if changed.get("jobs_per_gpu") == 1:
        check_nothing_shared(session, cluster)
    if "speed" in changed:
        _check_speed(cluster.executor, changed["speed"])
        reanchor(cluster, moment_of(session), speed=changed.pop("speed"))
    save_changed(session, cluster, **changed)
    record_cluster(session, "change cluster", cluster, before)
    return cluster


def wanted_parts(cluster: Cluster, given: dict[str, Any]) -> dict[str, Any]:
    """Return policy and placer after the change, checked: see `Parts.changed`. Raises Invalid."""
    named = {name: given[name] for name in PARTS if name in given}
    try:
        wanted = vars(cluster.parts.changed(**named))
    except UnknownNameError as error:
        raise invalid_input(error, "/policy") from None
    check_parts(**wanted)
    return wanted


def set_paused(session: Session, cluster_id: str, paused: bool, if_match: str | None) -> Cluster:
    """Pause or resume cluster time, and with it the rounds. Idempotent."""
    cluster = get_cluster(session, cluster_id, lock=True)
    if cluster.paused != paused:
        check_version_if_sent(if_match, cluster.version, cluster.latest_round)
        before = shown_cluster(cluster)
        reanchor(cluster, moment_of(session), paused=paused)
        save_changed(session, cluster)
        record_cluster(session, "pause cluster" if paused else "resume cluster", cluster, before)
    return cluster


def add_nodes(session: Session, cluster_id: str, bodies: Sequence[NodeBody]) -> list[Node]:
    """Add nodes after the others: no GPU changes its number."""
    cluster = get_cluster(session, cluster_id, lock=True)
    if cluster.finds_nodes:
        raise Conflict(
            f"The nodes of {cluster.name!r} come from Slurm: add them there."
            if cluster.executor == ExecutorKind.SLURM
            else f"The nodes of {cluster.name!r} are the GPUs of this machine: there are no others."
        )
    return _add_nodes(session, cluster, bodies)


def add_found_nodes(session: Session, cluster_id: str, bodies: Sequence[NodeBody]) -> list[Node]:
    """Add nodes that the executor has found. Raises Invalid for what no cluster can have."""
    return _add_nodes(session, get_cluster(session, cluster_id, lock=True), bodies)


def _add_nodes(session: Session, cluster: Cluster, bodies: Sequence[NodeBody]) -> list[Node]:
    present = nodes_of(session, cluster.id)
    nodes = _expanded(bodies, present=present)
    _check_types(cluster, nodes, "/nodes")
    check_whole([*present, *nodes])
    _add(session, cluster, nodes, first_position=len(present))
    save_changed(session, cluster)
    record_nodes(session, cluster, nodes)
    return nodes


def check_parts(
    policy: str,
    policy_parameters: dict[str, object],
    placer: str | None,
    placer_parameters: dict[str, object],
) -> float:
    """Check that policy and placer exist and accept their parameters.

    Returns the policy's default interval of rounds. Placer None: the policy's own. Raises Invalid.
    """
    if "round_seconds" in policy_parameters:
        error = ParameterError(
            "is no parameter of a policy",
            field="round_seconds",
            value=policy_parameters["round_seconds"],
            remedy="Give it as the field round_seconds, beside policy_parameters.",
        )
        raise invalid_input(error, "/policy_parameters/round_seconds")
    built = _build(POLICIES, policy, policy_parameters, pointer="/policy")
    _build(PLACERS, placer or suiting_placer(policy), placer_parameters, pointer="/placer")
    return built.default_round_seconds


def _build(registry: Registry[T], name: str, parameters: dict[str, object], *, pointer: str) -> T:
    try:
        registry.entry(name)
    except InputError as error:
        raise invalid_input(error, pointer) from None
    try:
        return registry.build(name, parameters)
    except InputError as error:
        raise invalid_input(error, f"{pointer}_parameters/{error.field}") from None


def _check_types(cluster: Cluster, nodes: Sequence[Node], pointer: str) -> None:
    """Raise Invalid for a GPU type on which no job of a simulated cluster could ever run."""
    if cluster.runs_commands:
        return
    try:
        check_types(dict.fromkeys(node.gpu_type for node in nodes))
    except ClusterError as error:
        raise invalid_input(error, pointer) from None


def _check_speed(executor: str, speed: float) -> None:
    if executor != ExecutorKind.SIMULATED and speed != 1.0:
        message = "A cluster that runs commands has the speed of the world."
        error = FieldError("/speed", "must_be_one", message, "Give 1, or leave it out.", speed)
        raise Invalid(message, errors=[error])


def _declared_nodes(body: ClusterBody) -> list[Node]:
    if (body.nodes is None) == (body.shape is None):
        message = "Give either nodes or shape, and not both."
        raise Invalid(
            message,
            errors=[
                FieldError(
                    "/nodes", "either_or", message, "Write for example shape: t4=6x4,a100=2x8."
                )
            ],
        )
    if body.shape is not None:
        try:
            parsed = engine.Cluster.parse(body.shape, max_gpus=MAX_CLUSTER_GPUS)
        except ClusterError as error:
            raise invalid_input(error, "/shape") from None
        check_size(len(parsed.nodes), parsed.gpu_count, "/shape")
        return [
            Node(cluster_id="", name=n.id, gpu_type=n.gpu_type, gpu_count=n.gpu_count, position=0)
            for n in parsed.nodes
        ]
    nodes = _expanded(body.nodes or [], present=[])
    check_whole(nodes)
    return nodes


def _expanded(bodies: Sequence[NodeBody], *, present: Sequence[Node]) -> list[Node]:
    """Make a row for every node after those `present`. Raises Invalid for too many.

    A node without a name is called by type and number: `t4-6`.
    """
    gpus = sum(node.gpu_count for node in present) + sum(
        body.count * body.gpu_count for body in bodies
    )
    check_size(len(present) + sum(body.count for body in bodies), gpus, "/nodes")
    counts = dict(Counter(node.gpu_type for node in present))
    nodes = []
    for body in bodies:
        for index in range(body.count):
            number = counts.get(body.gpu_type, 0)
            counts[body.gpu_type] = number + 1
            name = (
                f"{body.gpu_type}-{number}"
                if body.name is None
                else body.name
                if body.count == 1
                else f"{body.name}-{index}"
            )
            nodes.append(
                Node(
                    cluster_id="",
                    name=name,
                    gpu_type=body.gpu_type,
                    gpu_count=body.gpu_count,
                    memory_gib=body.memory_gib,
                    position=0,
                )
            )
    return nodes


def check_size(nodes: int, gpus: int, pointer: str) -> None:
    """Raise Invalid for a cluster too large to show on its page or in an answer."""
    for count, most, noun in ((nodes, MAX_NODES, "nodes"), (gpus, MAX_CLUSTER_GPUS, "GPUs")):
        if count > most:
            message, remedy = (
                f"The cluster would have {count} {noun}.",
                f"A cluster has at most {most} {noun}: make several.",
            )
            raise Invalid(
                f"{message} {remedy}",
                errors=[FieldError(pointer, "too_large", message, remedy, count)],
            )


def check_whole(nodes: Sequence[Node]) -> None:
    """Raise Invalid if the engine rejects these nodes as a cluster."""
    try:
        engine_cluster(nodes, jobs_per_gpu=1)
    except ClusterError as error:
        raise invalid_input(error, "/nodes") from None


def _add(session: Session, cluster: Cluster, nodes: Sequence[Node], *, first_position: int) -> None:
    for position, node in enumerate(nodes, start=first_position):
        node.cluster_id, node.position = cluster.id, position
    session.add_all(nodes)
    session.flush()


def save_changed(session: Session, cluster: Cluster, **values: object) -> Cluster:
    """Store these values of the cluster under a new version."""
    for name, value in values.items():
        setattr(cluster, name, value)
    cluster.version += 1
    session.add(cluster)
    session.flush()
    return cluster
