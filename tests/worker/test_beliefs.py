"""What is learnt of commands: fits that last, restarts in parts, scores of GPUs, as all see it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlmodel import select
from training_samples import TrainingCluster

from backend.attempts.beliefs import show_belief
from backend.attempts.comparisons import MeasuredScore
from backend.attempts.restarts import ASSUMED_SECONDS, restart_parts, restart_seconds
from backend.models import AttemptRow, GpuScore, Job, JobFit, Node, StepSample
from backend.models import Cluster as ClusterRow
from maat.api.beliefs import BeliefOut
from maat.scheduling.cluster import Cluster
from maat.vocabulary import AttemptKind, AttemptState, Outcome
from worker.training.beliefs import belief_of
from worker.training.knowledge import Knowledge
from worker.training.tables import read_tables
from worker.training.variability import ALL, classes_of, scores_of


def adaptive(cluster: TrainingCluster) -> str:
    return cluster.submit("train", adaptivity="adaptive", batch_size=32, max_batch_size=256)


def measure(cluster: TrainingCluster, job_id: str, batch: int, seconds: float) -> None:
    """Set what is believed of one configuration on one t4."""
    with cluster.database.session_scope() as session:
        mine = (StepSample.job_id == job_id, StepSample.per_gpu_batch_size == batch)
        row = session.exec(select(StepSample).where(*mine)).first() or StepSample(
            job_id=job_id,
            gpu_type="t4",
            node_count=1,
            replica_count=1,
            per_gpu_batch_size=batch,
            accumulation_steps=0,
            count=100,
            step_mean=seconds,
            step_m2=0.0,
            sync_mean=0.0,
            believed_sync=0.0,
            believed_weight=1.0,
            first_seconds=0.0,
            last_seconds=0.0,
        )
        row.step_mean = row.believed_step = seconds
        session.add(row)


def belief_shown(cluster: TrainingCluster, job_id: str) -> BeliefOut:
    with cluster.database.session_scope(writes=False) as session:
        return show_belief(session, session.get_one(Job, job_id))


def fits(cluster: TrainingCluster) -> list[JobFit]:
    with cluster.database.session_scope(writes=False) as session:
        return list(session.exec(select(JobFit)))


def test_a_fit_is_stored_shown_and_made_again_only_when_samples_move(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster)
    assert belief_shown(cluster, job_id)["types"] == []
    measure(cluster, job_id, 32, 0.20)
    measure(cluster, job_id, 64, 0.36)
    cluster.note()
    (first,) = fits(cluster)
    (shown,) = belief_shown(cluster, job_id)["types"]
    assert (shown["gpu_type"], shown["sample_count"], shown["step_count"]) == ("t4", 2, 200)
    assert shown["error"] < 0.01
    assert shown["forecast_error"] is None
    (curve,) = shown["curves"]
    at = {p["per_gpu_batch_size"]: p["step_seconds"] for p in curve["points"]}
    assert min(at) < 32
    assert max(at) == 128
    assert at[128] == pytest.approx(0.68, rel=0.02)

    cluster.forget_everything()
    cluster.wind(60.0)
    cluster.note()
    assert fits(cluster)[0].fitted_seconds == first.fitted_seconds

    measure(cluster, job_id, 128, 0.34)  # half of what the model foretells
    cluster.note()
    (second,) = fits(cluster)
    assert second.fitted_seconds > first.fitted_seconds
    assert second.forecast_error == pytest.approx(1.0, rel=0.05)
    assert second.error < 0.5
    (after,) = belief_shown(cluster, job_id)["types"]
    assert shown["missed"] == []
    off = [abs(one["modelled_seconds"] / one["measured_seconds"] - 1) for one in after["missed"]]
    assert off == sorted(off, reverse=True)
    assert min(off) > 0.1
    assert {one["measured_seconds"] for one in after["missed"]} <= {0.20, 0.36, 0.34}


def test_restarts_are_believed_by_what_they_took_and_reach_the_policies(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster)
    assert restart_seconds(restart_parts([])) == 30.0 == sum(ASSUMED_SECONDS.values())
    with cluster.database.session_scope() as session:
        cluster_id = session.get_one(Job, job_id).cluster_id
        session.add_all(attempt(job_id, cluster_id, number) for number in range(1, 21))
    shown = belief_shown(cluster, job_id)
    parts = {part["name"]: part for part in shown["restart"]}
    assert {name: part["measured"] for name, part in parts.items()} == dict.fromkeys(parts, 10)
    assert parts["start"]["seconds"] == pytest.approx((10 * 6.0 + 20.0) / 11)
    assert parts["stop"]["deviation"] == pytest.approx(0.0)
    assert shown["restart_seconds"] == pytest.approx((10 * 12.5 + 30.0) / 11)
    with cluster.database.session_scope(writes=False) as session:
        row = session.get_one(Job, job_id)
        tables = read_tables(session, session.get_one(ClusterRow, cluster_id))
        known = Knowledge(Cluster.parse("t4=2x4,a100=1x8"))
        known.go_on(tables, {job_id: (row.tenant_id, row.model)})
        spec = known.spec(row, "default", tables.attempts[job_id])
    assert spec.restart_seconds == pytest.approx(shown["restart_seconds"])


def test_a_profile_is_no_run_and_an_attempt_that_trained_is_one() -> None:
    profile = attempt("job_1", "clu_1", 1)
    profile.kind = AttemptKind.PROFILE.value
    trained, ordered = attempt("job_1", "clu_1", 2), attempt("job_1", "clu_1", 3)
    trained.gpu_count, ordered.gpu_count, ordered.running_seconds = 3, 4, None
    assert belief_of({}, {}, None, [profile]).peak_replica_count == 0
    assert belief_of({}, {}, None, [profile, trained, ordered]).peak_replica_count == 3


def attempt(job_id: str, cluster_id: str, number: int) -> AttemptRow:
    """An attempt that took 1 s to its processes, 8 s to its first report, 3.5 s to stop."""
    return AttemptRow(
        job_id=job_id,
        cluster_id=cluster_id,
        number=number,
        round_number=number,
        state=AttemptState.ENDED.value,
        outcome=Outcome.STOPPED.value,
        reports=True,
        gpu_type="t4",
        gpus_by_node={"t4-0": [0]},
        gpu_count=1,
        ordered_seconds=0.0,
        queued_seconds=10.0,
        alive_seconds=11.0,
        running_seconds=19.0,
        restore_seconds=2.0,
        stop_seconds=100.0,
        ended_seconds=103.5,
    )


seconds = st.floats(0.0, 1e4)


@examples(max_examples=50)
@given(times=st.lists(st.tuples(seconds, seconds, seconds, seconds, seconds, seconds), max_size=15))
def test_parts_of_a_restart_lie_between_what_is_assumed_and_what_was_measured(
    times: list[tuple[float, ...]],
) -> None:
    attempts = []
    for number, (queued, alive, running, restore, asked, ended) in enumerate(times, start=1):
        row = attempt("job", "cluster", number)
        row.queued_seconds, row.alive_seconds, row.running_seconds = queued, alive, running
        row.restore_seconds, row.stop_seconds, row.ended_seconds = restore, asked, ended
        attempts.append(row)
    for part in restart_parts(attempts):
        assert part.seconds >= 0.0
        assert part.measured == min(len(times), 10)
        if not times:
            assert part.seconds == part.assumed_seconds


def test_scores_are_of_the_types_median_gpu_and_reach_the_placer(cluster: TrainingCluster) -> None:
    job_id = adaptive(cluster)
    with cluster.database.session_scope() as session:
        row = session.get_one(Job, job_id)
        session.add(compares := attempt(job_id, row.cluster_id, 1))
        nodes = {node.name: node.id for node in session.exec(select(Node))}
        session.flush()
        session.add_all(
            GpuScore(
                node_id=nodes["t4-0"],
                gpu_index=index,
                attempt_id=compares.id,
                tenant_id=row.tenant_id,
                application="script",
                count=5,
                ratio=ratio,
                updated_seconds=0.0,
            )
            for index, ratio in enumerate((1.0, 1.0, 1.5))
        )
        tables = read_tables(session, session.get_one(ClusterRow, row.cluster_id))
    known = Knowledge(Cluster.parse("t4=2x4,a100=1x8"))
    models = {job_id: (row.tenant_id, row.model)}
    known.go_on(tables, models)
    assert known.cluster.scores[ALL][:5] == (1.0, 1.0, 1.5, 1.0, 1.0)
    assert known.spec(row, "default", ()).variability_class == ALL
    same = known.cluster
    known.go_on(tables, models)
    assert known.cluster is same


def test_classes_need_as_many_kinds_of_jobs_as_there_are_classes() -> None:
    used = {
        "vision": {"dram": 0.3, "functional_unit": 0.9},
        "language": {"dram": 0.5, "functional_unit": 0.6},
    }
    assert classes_of(used) == {}
    used |= {"graph": {"dram": 0.9, "functional_unit": 0.1}}
    classes = classes_of(used)
    assert classes == {"vision": "A", "language": "B", "graph": "C"}
    measured = [
        MeasuredScore("t4-0", 0, "att_1", "team", "vision", 1.0, 1.0, 0.0),
        MeasuredScore("t4-0", 1, "att_1", "team", "vision", 2.0, 1.0, 0.0),
        MeasuredScore("t4-0", 1, "att_2", "team", "graph", 1.0, 1.0, 0.0),
    ]
    scores = scores_of(Cluster.parse("t4=1x2"), measured, classes)
    assert scores["A"] == (0.67, 1.33)
    assert scores["C"] == (1.0, 1.0)
    assert scores[ALL] == (0.67, 1.33)
