"""What is said of moves, held against the truth that only the simulator knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from live_samples import job, make_cluster, spans_of, step_at, submit

from backend.database import Database
from backend.jobs.choices import choice_out
from backend.jobs.kept_reasons import evidence_of
from backend.jobs.remaining import remaining_seconds
from backend.jobs.spans import measured_of, timeline_of
from backend.models import Cluster, Job, JobAllocation
from maat.scheduling.belief import Fitter
from maat.scheduling.choice import choice_of
from maat.scheduling.move_worth import BatchPace
from maat.simulation.simulated_job import SimulatedJob

# Samples per second by job, its GPUs, and total batch size.
Truth = dict[tuple[str, tuple[int, ...], int], float]


@pytest.fixture
def truth(monkeypatch: pytest.MonkeyPatch) -> Truth:
    """The true throughput of all that runs, noted while it runs."""
    found: Truth = {}
    run = SimulatedJob._work_rate

    def noted(job: SimulatedJob, fitter: Fitter) -> float:
        rate = run(job, fitter)
        assert job.plan is not None
        assert job.allocation is not None
        key = (job.spec.id, job.allocation.gpus, job.plan.total_batch_size)
        found[key] = job._samples_per_second
        return rate

    monkeypatch.setattr(SimulatedJob, "_work_rate", noted)
    return found


def moved_jobs(database: Database) -> list[str]:
    """Adaptive jobs that come one after the other: each takes GPUs from those before."""
    cluster_id = make_cluster(database)
    jobs = submit(database, cluster_id, model="cifar10", work_scale=4.0, count=2)
    for number in range(1, 50):
        step_at(database, cluster_id, 300.0 * number)
        if number in (4, 8, 12):
            jobs += submit(
                database,
                cluster_id,
                model="deepspeech2" if number == 8 else "cifar10",
                work_scale=2.0,
                submitted_seconds=300.0 * number,
            )
    return jobs


def test_verdicts_on_moves_are_those_of_the_truth(database: Database, truth: Truth) -> None:
    """Also of moves between batch sizes that ran for seconds, and ended between two rounds."""
    judged = 0
    for job_id in moved_jobs(database):
        spans = [span for span in spans_of(database, job_id) if not span.for_profile]
        with database.session_scope(writes=False) as session:
            timeline = timeline_of(session, session.get_one(Job, job_id))
            shown = timeline.show(spans, before=None)
            paces = [timeline.paces(span) for span in spans]
        for k, span in enumerate(spans):
            move = shown[k]["move"]
            if move is None or move["net_seconds"] is None or span.noise_scale is None:
                continue
            rates = [
                best(truth, spans[i], paces[i], noise_scale=span.noise_scale) for i in (k - 1, k)
            ]
            ran = move["ran_seconds"]
            net = rates[1] / rates[0] * ran - move["stood_seconds"] - ran
            assert move["net_seconds"] == pytest.approx(net, abs=1.0)
            judged += 1
    assert judged >= 5


def best(
    truth: Mapping[tuple[str, tuple[int, ...], int], float],
    span: JobAllocation,
    paces: Sequence[BatchPace],
    *,
    noise_scale: float,
) -> float:
    """The largest true goodput of a span's batch sizes, but for the factor that all share."""
    sizes = {pace.total_batch_size for pace in paces if pace.samples > 0}
    return max(
        truth[span.job_id, tuple(span.gpus), size] / (noise_scale + size)
        for size in sizes
        if size is not None
    )


def test_the_explanation_never_contradicts_the_ledger_below_it(
    database: Database, truth: Truth
) -> None:
    """Both price by what was measured; at one noise scale they find the same GPUs faster."""
    compared = 0
    for job_id in moved_jobs(database):
        spans = [span for span in spans_of(database, job_id) if not span.for_profile]
        with database.session_scope(writes=False) as session:
            row = session.get_one(Job, job_id)
            timeline, measured = timeline_of(session, row), measured_of(session, row)
            evidence = evidence_of(row.reason_evidence)
            shown = timeline.show(spans, before=None)
        move, last = shown[-1]["move"] if shown else None, spans[-1] if spans else None
        if move is None or last is None or move["net_seconds"] is None:
            continue
        before = spans[-2]
        asked = {
            **evidence,
            "noise_scale": last.noise_scale,
            "gpu_type": last.gpu_type,
            "gpu_count": last.gpu_count,
            "runner_up_gpu_type": before.gpu_type,
            "runner_up_gpu_count": before.gpu_count,
        }
        choice = choice_out(asked, measured)
        assert choice is not None
        here, there = choice["chosen"]["measured_goodput"], None
        if choice["runner_up"] is not None:
            there = choice["runner_up"]["measured_goodput"]
        if not here or not there:
            continue
        rates = (move["before_samples_per_second"], move["after_samples_per_second"])
        assert rates[0] is not None
        assert rates[1] is not None
        compared += 1
        assert here / there == pytest.approx(rates[1] / rates[0], rel=0.02)
    assert compared >= 1


def test_a_job_that_has_not_run_on_its_gpus_yet_has_no_pace_there(database: Database) -> None:
    """What it did on the GPUs before is not what it does `now` on the new ones."""
    cluster_id = make_cluster(database)
    first = submit(database, cluster_id, model="cifar10", work_scale=4.0)
    step_at(database, cluster_id, *[300.0 * number for number in range(1, 5)])
    jobs = first + submit(database, cluster_id, model="cifar10", count=6, submitted_seconds=1200.0)
    moves = 0
    for number in range(5, 12):
        step_at(database, cluster_id, 300.0 * number)
        for job_id in jobs:
            last = spans_of(database, job_id)[-1:]
            if not last or last[0].to_seconds is not None or last[0].for_profile:
                continue
            row = job(database, job_id)
            has_run = last[0].running_seconds is not None
            assert (row.goodput is not None) == has_run
            moves += row.restarts > 0 and not has_run
    assert moves >= 1


def test_words_and_figures_of_a_job_give_one_time_left_in_every_round(database: Database) -> None:
    """And none of them is at the pace of the GPUs before, while it stands still on new ones."""
    cluster_id = make_cluster(database)
    jobs = submit(database, cluster_id, model="cifar10", work_scale=4.0, count=2)
    compared, stood = 0, 0
    for number in range(1, 14):
        step_at(database, cluster_id, 300.0 * number)
        if number in (3, 6):
            jobs += submit(database, cluster_id, count=3, submitted_seconds=300.0 * number)
        for job_id in jobs:
            with database.session_scope(writes=False) as session:
                row = session.get_one(Job, job_id)
                left = remaining_seconds(row, session.get_one(Cluster, cluster_id))
                measured = measured_of(session, row)
            choice = choice_of(evidence_of(row.reason_evidence), measured)
            if row.gpus is None or choice is None:
                continue
            said = " ".join(choice.sentences)
            speaks_of_now = "there now" in said or "at its present pace" in said
            if row.goodput is None:
                stood += 1
                assert left is None
                assert not speaks_of_now
            else:
                compared += speaks_of_now
                assert choice.remaining_seconds == left
    assert compared >= 1
    assert stood >= 1
