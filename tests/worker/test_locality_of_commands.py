"""What steps across nodes cost, from reports to the placer: declared, measured or assumed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from sqlmodel import select
from training_samples import TrainingCluster

from backend.attempts.beliefs import show_belief
from backend.attempts.locality import NEWEST_JOBS, weighed_penalty
from backend.ids import new_id
from backend.models import AttemptRow, GpuScore, Job, JobCommand, Node, StepSample, Tenant
from backend.models import Cluster as ClusterRow
from maat.api.beliefs import PenaltyOut
from maat.scheduling.cluster import Cluster
from maat.scheduling.locality import LEAST_STEPS
from maat.vocabulary import AttemptState, JobState, Outcome
from worker.training.knowledge import Knowledge
from worker.training.tables import read_tables

ASSUMED = {"penalty": 1.0, "origin": "assumed", "configurations": 0, "steps": 0}


def submit(cluster: TrainingCluster, *, tenant: str | None = None) -> str:
    job_id = cluster.submit("train", gpu_count=2)
    if tenant is not None:
        with cluster.database.session_scope() as session:
            session.get_one(Job, job_id).tenant_id = tenant
    return job_id


def another_tenant(cluster: TrainingCluster) -> str:
    with cluster.database.session_scope() as session:
        tenant = Tenant(name="other")
        session.add(tenant)
        session.flush()
        return tenant.id


def measure(
    cluster: TrainingCluster,
    job_id: str,
    means: Iterable[tuple[int, float]],
    *,
    count: int = LEAST_STEPS,
) -> None:
    """Store what two replicas on t4 took for a step on so many nodes, in seconds."""
    with cluster.database.session_scope() as session:
        for nodes, seconds in means:
            session.add(
                StepSample(
                    job_id=job_id,
                    gpu_type="t4",
                    node_count=nodes,
                    replica_count=2,
                    per_gpu_batch_size=16,
                    accumulation_steps=0,
                    count=count,
                    step_mean=seconds,
                    step_m2=0.0,
                    sync_mean=0.0,
                    believed_step=seconds,
                    believed_sync=0.0,
                    believed_weight=1.0,
                    first_seconds=0.0,
                    last_seconds=0.0,
                )
            )


def declare(cluster: TrainingCluster, job_id: str, penalty: float) -> None:
    with cluster.database.session_scope() as session:
        session.get_one(JobCommand, job_id).locality_penalty = penalty


def shown(cluster: TrainingCluster, job_id: str) -> dict[str, PenaltyOut]:
    with cluster.database.session_scope(writes=False) as session:
        found = show_belief(session, session.get_one(Job, job_id))["locality"]
    return {one.pop("gpu_type"): one for one in found}  # type: ignore[misc]


def in_a_round(cluster: TrainingCluster, job_id: str) -> dict[str, float]:
    """Return what the placer takes a step across nodes to cost, by GPU type."""
    with cluster.database.session_scope(writes=False) as session:
        row = session.get_one(Job, job_id)
        tables = read_tables(session, session.get_one(ClusterRow, cluster.cluster_id))
        known = Knowledge(Cluster.parse("t4=2x4,a100=1x8"))
        known.go_on(tables, {job_id: row.model})
        spec = known.spec(row, "default", tables.attempts.get(job_id, ()))
    return {kind: spec.penalty_across_nodes(kind) for kind in ("t4", "a100")}


def test_until_steps_were_measured_both_ways_a_round_assumes_that_nodes_cost_nothing(
    cluster: TrainingCluster,
) -> None:
    job_id = submit(cluster)
    measure(cluster, job_id, [(1, 0.1)])
    assert in_a_round(cluster, job_id) == {"t4": 1.0, "a100": 1.0}
    assert shown(cluster, job_id)["t4"] == ASSUMED


def test_steps_of_jobs_of_one_model_together_tell_what_the_next_one_loses(
    cluster: TrainingCluster,
) -> None:
    """The first job ran within a node and has ended, the second across nodes."""
    first, second, third = (submit(cluster) for _ in range(3))
    measure(cluster, first, [(1, 0.1)])
    measure(cluster, second, [(2, 0.17)])
    with cluster.database.session_scope() as session:
        session.get_one(Job, first).finished_seconds = 10.0
    assert in_a_round(cluster, third) == {"t4": 1.7, "a100": 1.0}
    assert shown(cluster, third)["t4"] == {
        "penalty": 1.7,
        "origin": "measured",
        "configurations": 1,
        "steps": 2 * LEAST_STEPS,
    }


def test_means_of_few_steps_and_other_models_tell_nothing(cluster: TrainingCluster) -> None:
    few, other, job_id = (submit(cluster) for _ in range(3))
    measure(cluster, few, [(1, 0.1), (2, 0.5)], count=LEAST_STEPS - 1)
    measure(cluster, other, [(1, 0.1), (2, 0.5)])
    with cluster.database.session_scope() as session:
        session.get_one(Job, other).model = "another"
    assert in_a_round(cluster, job_id) == {"t4": 1.0, "a100": 1.0}


def test_what_its_owner_declares_is_taken_on_all_types(cluster: TrainingCluster) -> None:
    job_id = submit(cluster)
    measure(cluster, job_id, [(1, 0.1), (2, 0.17)])
    declare(cluster, job_id, 1.2)
    assert in_a_round(cluster, job_id) == {"t4": 1.2, "a100": 1.2}
    assert shown(cluster, job_id)["t4"] == {**ASSUMED, "penalty": 1.2, "origin": "declared"}


def test_steps_of_another_tenants_jobs_of_the_same_name_tell_nothing(
    cluster: TrainingCluster,
) -> None:
    job_id, theirs = submit(cluster), submit(cluster, tenant=another_tenant(cluster))
    measure(cluster, theirs, [(1, 0.1), (2, 0.9)])
    assert in_a_round(cluster, job_id) == {"t4": 1.0, "a100": 1.0}
    assert shown(cluster, job_id)["t4"] == ASSUMED
    assert shown(cluster, theirs)["t4"]["penalty"] == 9.0


def test_steps_of_a_tenants_oldest_jobs_are_forgotten(cluster: TrainingCluster) -> None:
    job_id = submit(cluster)
    measure(cluster, job_id, [(1, 0.1), (2, 0.17)])
    with cluster.database.session_scope() as session:
        old = session.exec(select(Job).where(Job.id == job_id)).one()
        for number in range(NEWEST_JOBS):
            newer = old.model_dump(exclude={"id"}) | {"submitted_seconds": 1.0 + number}
            session.add(Job(**newer, id=new_id("job")))
    assert shown(cluster, job_id)["t4"] == ASSUMED


@pytest.mark.parametrize(
    ("placer", "gpu_type", "penalty"),
    [
        ("pal", "t4", (1.7, "measured")),
        ("pal", "a100", (1.0, "assumed")),
        ("pal", None, None),
        ("packed", "t4", None),
        ("no-such", "t4", None),
    ],
)
def test_the_penalty_explains_a_job_that_holds_gpus_if_its_placer_weighs_it(
    cluster: TrainingCluster,
    placer: str,
    gpu_type: str | None,
    penalty: tuple[float, str] | None,
) -> None:
    job_id = submit(cluster)
    measure(cluster, job_id, [(1, 0.1), (2, 0.17)])
    with cluster.database.session_scope() as session:
        row = session.get_one(ClusterRow, cluster.cluster_id)
        job = session.get_one(Job, job_id)
        row.placer, job.gpu_type = placer, gpu_type
        found = weighed_penalty(session, row, job)
    assert (None if found is None else (found.penalty, found.origin)) == penalty


def ended_attempt(job: Job) -> AttemptRow:
    return AttemptRow(
        job_id=job.id,
        cluster_id=job.cluster_id,
        number=1,
        round_number=1,
        state=AttemptState.ENDED.value,
        outcome=Outcome.SUCCEEDED.value,
        reports=True,
        gpu_type="t4",
        gpus_by_node={"t4-0": [0, 1]},
        gpu_count=2,
        ordered_seconds=0.0,
        ended_seconds=1.0,
    )


@pytest.mark.parametrize(("across", "node_count"), [(None, 2), (0.15, 2), (0.25, 1)])
def test_a_round_under_pal_goes_by_what_was_measured(
    cluster: TrainingCluster, across: float | None, node_count: int
) -> None:
    """One GPU of each t4 node is twice as fast as the others: apart pays below a penalty of 2."""
    compared = submit(cluster)
    cluster.change(compared, finished_seconds=1.0, state=JobState.SUCCEEDED.value)
    with cluster.database.session_scope() as session:
        session.get_one(ClusterRow, cluster.cluster_id).placer = "pal"
        session.add(attempt := ended_attempt(session.get_one(Job, compared)))
        session.flush()
        for node in session.exec(select(Node).where(Node.cluster_id == cluster.cluster_id)):
            for gpu in range(node.gpu_count if node.gpu_type == "t4" else 0):
                session.add(
                    GpuScore(
                        node_id=node.id,
                        gpu_index=gpu,
                        attempt_id=attempt.id,
                        tenant_id=session.get_one(Job, compared).tenant_id,
                        application="script",
                        count=10,
                        ratio=1.0 if gpu == 0 else 2.0,
                        updated_seconds=0.0,
                    )
                )
    job_id = submit(cluster)
    cluster.change(job_id, gpu_types=["t4"])
    measure(cluster, job_id, [(1, 0.1), *([] if across is None else [(2, across)])])
    cluster.decide()
    assert len(cluster.attempts(job_id)[-1].gpus_by_node) == node_count


@pytest.mark.parametrize("types", [["t4"], None])
def test_only_types_that_the_job_may_use_are_told(
    cluster: TrainingCluster, types: list[str] | None
) -> None:
    job_id = submit(cluster)
    with cluster.database.session_scope() as session:
        session.get_one(Job, job_id).gpu_types = types
    assert set(shown(cluster, job_id)) == ({"t4"} if types else {"t4", "a100"})
