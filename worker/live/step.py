"""One step of a live cluster: whether it is due, who makes it, what is stored.

Knows no broker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.clocktime import Moment, cluster_seconds, reanchor, stands_still
from backend.clusters.repository import all_clusters, get_cluster, nodes_of
from backend.database import Database
from backend.models import Cluster as ClusterRow
from backend.models import ClusterRuntime
from backend.moments import moment_of
from backend.quotas.repository import engine_quotas
from backend.reservations.repository import tenant_names
from maat.scheduling.events import Event
from maat.scheduling.loop import RoundLoop
from maat.scheduling.parameters import parameter_hash
from maat.scheduling.protocols import Executor
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from maat.scheduling.rounds import Changes, ClusterState
from worker.executors import EXECUTORS
from worker.live.cluster import LiveCluster
from worker.live.interference import known_interference
from worker.live.lease import extend, leased
from worker.live.memory import MEMORY
from worker.live.snapshot import is_due, news_of, reservations_at, snapshot_of
from worker.live.step_seconds import DECIDE, OBSERVE, READ, RESTORE, StepSeconds
from worker.rounds.store import SqlRoundStore
from worker.writes import carry_out

log = logging.getLogger(__name__)


def due_clusters(database: Database, *, allow_commands: bool = True) -> list[str]:
    """Return the clusters whose next round is due now.

    Where commands are not allowed no round moves any: what runs goes on, and could not be started.
    Clusters whose time waits for a clock that was set back continue from where they are.
    """
    with database.session_scope(writes=False) as session:
        clusters, now = all_clusters(session), moment_of(session)
        due = [
            row.id
            for row in clusters
            if is_due(session, row, now) and (allow_commands or not row.runs_commands)
        ]
    for row in clusters:
        if stands_still(row, now):
            _go_on(database, row.id)
    return due


def step_cluster(
    database: Database, cluster_id: str, *, seconds: StepSeconds | None = None
) -> int | None:
    """Make the cluster's next round if it is due and no other worker makes it.

    Returns the number of the committed round. `seconds`: records what its parts took.
    """
    spent = StepSeconds() if seconds is None else seconds
    with leased(database, cluster_id) as fencing, spent.part(DECIDE):
        number = None if fencing is None else _make_round(database, cluster_id, fencing, spent)
    if number is not None:
        log.debug(
            "round %d of %s took %.3f CPU s: %s", number, cluster_id, spent.total, spent.by_part
        )
    return number


def note_cluster(database: Database, cluster_id: str, fencing: int) -> None:
    """Record how the jobs stand, between rounds, while the lease is held."""
    remembered = MEMORY.take(database, cluster_id, fencing=fencing)
    seconds = StepSeconds()
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(ClusterRow, cluster_id)
        live = _live_of(session, cluster, moment_of(session), remembered, seconds)
    if live is None:
        return
    observed = live.observe()
    writes = live.keep_observation(observed)
    with database.session_scope() as session:
        mine = (col(ClusterRow.id) == cluster_id, col(ClusterRow.fencing) == fencing)
        held = sa.update(ClusterRow).where(*mine).values(fencing=fencing)
        if session.connection().execute(held).rowcount != 1:
            return
        carry_out(session, writes)
        if session.get(ClusterRuntime, cluster_id) is None:  # no round has been made yet
            state = dict(live.executor_state())
            session.add(ClusterRuntime(cluster_id=cluster_id, executor_state=state))
        extend(session, cluster_id, fencing)
    MEMORY.keep(database, live, fencing=fencing)


def _live_of(
    session: Session,
    cluster: ClusterRow,
    moment: Moment,
    remembered: LiveCluster | None,
    seconds: StepSeconds,
) -> LiveCluster | None:
    live = None if remembered is None else _continued(session, remembered, cluster, moment, seconds)
    return _restored(session, cluster, seconds) if live is None else live


def _make_round(
    database: Database, cluster_id: str, fencing: int, seconds: StepSeconds
) -> int | None:
    remembered = MEMORY.take(database, cluster_id, fencing=fencing)
    with seconds.part(READ), database.session_scope(writes=False) as session:
        step = _begin(session, cluster_id, remembered, seconds)
    if step is None:
        if remembered is not None:
            MEMORY.keep(database, remembered, fencing=fencing)
        return None
    store = _store(database, step, fencing, seconds)
    stepped = _round_loop(step, store, seconds).step()
    if stepped is None:
        return None
    if store.has_written_all:
        MEMORY.keep(database, step.live, fencing=fencing)
    return stepped[0].round_number


@dataclass(frozen=True)
class _Step:
    """A step that is due: the cluster's row as read, its jobs, and what sharing costs them."""

    cluster: ClusterRow
    live: LiveCluster
    reservations: tuple[Reservation, ...]
    quotas: tuple[TenantQuota, ...]
    interference: Mapping[tuple[str, str, int], float]


def _begin(
    session: Session, cluster_id: str, remembered: LiveCluster | None, seconds: StepSeconds
) -> _Step | None:
    """Begin a step; return None if it cannot be made.

    The cluster may be deleted, may have no node, or its round may not be due (any more). A newer
    version may have stored an executor that this one does not have.
    """
    cluster, moment = session.get(ClusterRow, cluster_id), moment_of(session)
    if cluster is None or not is_due(session, cluster, moment):
        return None
    if cluster.executor not in EXECUTORS:
        log.error(
            "cluster %s has the executor %r, which this version does not have: no round is made",
            cluster_id,
            cluster.executor,
        )
        return None
    live = _live_of(session, cluster, moment, remembered, seconds)
    if live is None:
        return None
    reservations = reservations_at(session, cluster, moment)
    quotas = engine_quotas(session, cluster.id)
    known = known_interference(session, cluster, live.interference)
    return _Step(cluster, live, reservations, quotas, known)


def _continued(
    session: Session, live: LiveCluster, cluster: ClusterRow, moment: Moment, seconds: StepSeconds
) -> LiveCluster | None:
    """Continue from memory; return None if it differs from the rows."""
    if not live.is_up_to_date(cluster, nodes_of(session, cluster.id)):
        return None
    if tenant_names(session, list(live.tenants)) != live.tenants:
        return None  # quotas and reservations find jobs by their tenant's name
    news = news_of(session, cluster, live.declared)
    if news is None:
        return None
    with seconds.part(RESTORE):
        live.go_on(news, cluster, now=cluster_seconds(cluster, moment), moment=moment)
    return live


def _restored(session: Session, cluster: ClusterRow, seconds: StepSeconds) -> LiveCluster | None:
    """Restore from the rows; return None if the cluster has no node."""
    snapshot = snapshot_of(session, cluster)
    if snapshot is None:
        return None
    with seconds.part(RESTORE):
        return LiveCluster(snapshot)


class _MeasuredExecutor:
    """An executor that measures the time to observe and to apply."""

    def __init__(self, executor: Executor, seconds: StepSeconds) -> None:
        self._executor, self._seconds = executor, seconds

    def observe(self) -> ClusterState:
        with self._seconds.part(OBSERVE):
            return self._executor.observe()

    def apply(self, changes: Changes) -> Sequence[Event]:
        with self._seconds.part(OBSERVE):
            return self._executor.apply(changes)


def _store(database: Database, step: _Step, fencing: int, seconds: StepSeconds) -> SqlRoundStore:
    row = step.cluster
    policy, _ = row.parts.built_or_missing()
    return SqlRoundStore(
        database,
        row.id,
        policy=row.policy,
        policy_version=parameter_hash(cast(Any, policy)),
        placer=row.placer,
        fencing=fencing,
        keeper=step.live,
        seconds=seconds,
    )


def _round_loop(step: _Step, store: SqlRoundStore, seconds: StepSeconds) -> RoundLoop:
    """Return the round loop of a live cluster, in the state after its last round."""
    row = step.cluster
    policy, placer = row.parts.built_or_missing()
    return RoundLoop(
        policy=policy,
        placer=placer,
        executor=_MeasuredExecutor(step.live, seconds),
        store=store,
        clock=step.live.clock,
        reservations=step.reservations,
        quotas=step.quotas,
        interference=step.interference,
        stability=row.stability,
        round_seconds=row.round_seconds,
        outlives_policy=True,
    )


def _go_on(database: Database, cluster_id: str) -> None:
    """Anchor a stopped cluster time at this moment."""
    with database.session_scope() as session:
        cluster, now = get_cluster(session, cluster_id, lock=True), moment_of(session)
        if stands_still(cluster, now):
            reanchor(cluster, now)
            session.add(cluster)
