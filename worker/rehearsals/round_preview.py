"""The next round of a live cluster, as it stands and after a change, side by side.

Both are played on the same jobs at the same moment. As a program it prints the result of a preview
as JSON: worker/rehearsals/previews.py starts it, and ends it if the preview is cancelled.

    python -m worker.rehearsals.round_preview PREVIEW
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from celery.platforms import set_pdeathsig
from sqlmodel import Session

from backend.clocktime import shown_at, utc_now
from backend.clusters.interference import interference_of, shown_interference
from backend.clusters.notes import cluster_notes
from backend.clusters.topology import capacity_by_type
from backend.database import Database
from backend.laboratory.use import charge
from backend.models import Cluster as ClusterRow
from backend.models import RoundPreview
from backend.policies.own import admit_own_policies
from backend.settings import get_settings
from maat.api.previews import (
    MOST_PREVIEWED_JOBS,
    JobFateOut,
    PreviewedJobOut,
    PreviewResultOut,
    RoundSideOut,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ContractViolation, PolicyFailed
from maat.scheduling.interference import named_for_sharing
from maat.scheduling.job import Job, JobId
from maat.scheduling.own.failures import sentence_of
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Change, ChangeKind, ClusterState
from worker.executors import EXECUTORS
from worker.executors.protocol import News
from worker.live.cluster import FixedClock, restoration_of
from worker.live.interference import known_interference
from worker.live.snapshot import snapshot_of
from worker.own_policies import run_own_policies_apart
from worker.rehearsals.last_round import stored_by_rounds, unapplied_changes
from worker.rehearsals.tried_rounds import Rules, observed, played

NICENESS = 5
"""As of `nice`: rounds go first."""
POLICY_FAILED = 3
"""The exit status if the policy that is tried fails; what is printed then says how."""
_PARTS = (
    "policy",
    "policy_parameters",
    "placer",
    "placer_parameters",
    "round_seconds",
    "jobs_per_gpu",
    "interference",
    "least_stay_seconds",
    "most_moves_per_hour",
)


def preview_of(session: Session, preview: RoundPreview) -> PreviewResultOut | None:
    """Play both rounds; return None if the cluster has no node any more."""
    cluster, wanted = session.get_one(ClusterRow, preview.cluster_id), preview.wanted
    snapshot = snapshot_of(session, cluster)
    if snapshot is None:
        return None
    rules = Rules(
        stored_by_rounds(session, cluster),
        snapshot.reservations,
        snapshot.quotas,
        known_interference(session, cluster, snapshot.interference),
    )
    begin = restoration_of(snapshot, FixedClock(snapshot.now))
    state = observed(
        EXECUTORS[cluster.executor].restore, begin, unapplied_changes(session, cluster)
    )
    # A preview that was asked for by an earlier version names no bounds.
    parts = {name: wanted[name] for name in _PARTS if name in wanted}
    changed = ClusterRow(**cluster.model_dump() | parts)
    places = changed.jobs_per_gpu
    after = replace(
        state,
        cluster=_without(state.cluster, wanted["drained_nodes"], jobs_per_gpu=places),
        jobs=_named(state.jobs, snapshot.news) if places > 1 else state.jobs,
    )
    declared = known_interference(session, changed, interference_of(session, changed))
    rounds = (
        played(cluster, state, rules, at=snapshot.now),
        played(
            changed,
            after,
            replace(rules, interference=declared),
            at=snapshot.now,
            outlives_policy=False,
        ),
    )
    shown = [shown_interference(session, (row,)).get(row.id) for row in (cluster, changed)]
    found = _compared(state, (cluster, changed), rounds, at=shown_at(cluster, snapshot.now))
    found["as_it_stands"]["interference"], found["with_change"]["interference"] = shown
    gpus = capacity_by_type(snapshot.nodes, usable_only=False)
    found["as_it_stands"]["notes"] = cluster_notes(cluster, gpus, snapshot.interference)
    found["with_change"]["notes"] = cluster_notes(changed, gpus, interference_of(session, changed))
    unseen = found["jobs_not_considered"] = _not_considered(state, snapshot.news)
    found["as_it_stands"]["jobs_waiting"] += unseen
    found["with_change"]["jobs_waiting"] += unseen
    return found


def _not_considered(state: ClusterState, news: News) -> int:
    """Count the jobs without GPUs that no round sees yet, and that nobody paused or cancelled."""
    others = {job.id for job in state.jobs} | news.paused.keys() | set(news.cancelled)
    return sum(row.id not in others and row.gpus is None for row in news.jobs)


def _without(cluster: Cluster, drained: Collection[str], *, jobs_per_gpu: int) -> Cluster:
    if not drained and jobs_per_gpu == cluster.jobs_per_gpu:
        return cluster
    nodes = [
        replace(node, drained=frozenset(range(node.gpu_count))) if node.id in drained else node
        for node in cluster.nodes
    ]
    return replace(cluster, nodes=tuple(nodes), jobs_per_gpu=jobs_per_gpu)


def _named(jobs: Sequence[Job], news: News) -> tuple[Job, ...]:
    """Return the jobs under their names in tables of slowdowns, which alone on GPUs they lack."""
    tenants = {row.id: row.tenant_id for row in news.jobs}
    return tuple(
        replace(job, spec=named_for_sharing(job.spec, tenant=tenants[job.spec.id])) for job in jobs
    )


def _compared(
    state: ClusterState,
    rows: tuple[ClusterRow, ClusterRow],
    rounds: tuple[RoundResult, RoundResult],
    *,
    at: str,
) -> PreviewResultOut:
    changes = [_changes(result) for result in rounds]
    jobs = [
        PreviewedJobOut(
            job_id=job.id,
            job_name="",
            tenant=None,
            gpu_type=None if job.allocation is None else job.allocation.gpu_type,
            gpu_count=0 if job.allocation is None else job.allocation.gpu_count,
            as_it_stands=_fate(job.id, rounds[0], changes[0]),
            with_change=_fate(job.id, rounds[1], changes[1]),
        )
        for job in state.jobs
        if job.id in changes[0] or job.id in changes[1]
    ]
    jobs.sort(key=lambda job: (not _differs(job), job["job_id"]))
    held = {gpu for job in state.jobs if job.allocation for gpu in job.allocation.gpus}
    return PreviewResultOut(
        round_number=rounds[0].round_number,
        at=at,
        gpus_in_use=len(held),
        gpus_in_service=int(np.count_nonzero(state.cluster.gpu_available)),
        as_it_stands=_side(rows[0], rounds[0], changes[0]),
        with_change=_side(rows[1], rounds[1], changes[1]),
        jobs_treated_differently=sum(map(_differs, jobs)),
        jobs=jobs[:MOST_PREVIEWED_JOBS],
        jobs_left_out=max(len(jobs) - MOST_PREVIEWED_JOBS, 0),
        jobs_not_considered=0,
    )


def _differs(job: PreviewedJobOut) -> bool:
    return job["as_it_stands"] != job["with_change"]


def _changes(result: RoundResult) -> dict[JobId, Change]:
    """Return what the round changes of which GPUs jobs hold, by job."""
    items = result.changes.items
    return {change.job_id: change for change in items if change.kind is not ChangeKind.BATCH}


def _fate(job_id: JobId, result: RoundResult, changes: Mapping[JobId, Change]) -> JobFateOut:
    change = changes.get(job_id)
    gpus = result.placement.placement.by_job.get(job_id, ())
    if not gpus:
        return JobFateOut(fate="wait" if change is None else "preempt", gpu_type=None, gpu_count=0)
    cluster = result.round_input.cluster
    kind = cluster.type_names[cluster.gpu_type_of[gpus[0]]]
    fate = "keep" if change is None else change.kind.value
    return JobFateOut(fate=fate, gpu_type=kind, gpu_count=len(gpus))  # type: ignore[typeddict-item]


def _side(row: ClusterRow, result: RoundResult, changes: Mapping[JobId, Change]) -> RoundSideOut:
    kinds = Counter(change.kind for change in changes.values())
    placement, cluster = result.placement.placement, result.round_input.cluster
    used = np.unique(placement.gpus)
    by_type = Counter(cluster.type_names[kind] for kind in cluster.gpu_type_of[used].tolist())
    with_gpus = len(placement.job_ids)
    return RoundSideOut(
        policy=row.policy,
        policy_parameters=row.policy_parameters,
        placer=row.placer,
        placer_parameters=row.placer_parameters,
        round_seconds=row.round_seconds,
        jobs_per_gpu=result.round_input.cluster.jobs_per_gpu,
        interference=row.interference,
        gpus_in_use=len(used),
        gpus_by_type={name: by_type[name] for name in cluster.type_names},
        jobs_with_gpus=with_gpus,
        jobs_waiting=len(result.round_input.jobs) - with_gpus,
        starts=kinds[ChangeKind.START],
        resumes=kinds[ChangeKind.RESUME],
        stops=kinds[ChangeKind.PREEMPT],
        resizes=kinds[ChangeKind.RESCALE],
        moves=kinds[ChangeKind.MIGRATE],
        restarts=kinds[ChangeKind.RESCALE] + kinds[ChangeKind.MIGRATE],
        seconds=result.seconds.total,
        notes=[],
    )


def main(preview_id: str) -> None:
    set_pdeathsig("SIGKILL")  # nobody would read it
    os.nice(NICENESS)
    settings = get_settings()
    run_own_policies_apart(settings)
    admit_own_policies(settings)
    database = Database.of(settings)
    with database.session_scope(writes=False) as session:
        preview = session.get_one(RoundPreview, preview_id)
        try:
            result: Any = preview_of(session, preview)
        except (PolicyFailed, ContractViolation) as failed:
            print(sentence_of(failed))
            sys.exit(POLICY_FAILED)
    with database.session_scope() as session:
        charge(session, preview.operation_id, time.process_time(), now=utc_now())
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
