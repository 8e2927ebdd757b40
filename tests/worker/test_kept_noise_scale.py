"""What rounds keep so that moves can be judged: noise scales, and batch sizes within spans."""

from __future__ import annotations

import pytest
from live_samples import make_cluster, spans_of, step_at, submit
from sqlmodel import select

from backend.database import Database
from backend.jobs.spans import timeline_of
from backend.models import BatchChange, Job


def test_a_span_keeps_the_noise_scale_of_its_beginning_and_its_batch_sizes(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, model="cifar10", work_scale=20.0)
    step_at(database, cluster_id, *[60.0 * number for number in range(1, 90)])

    spans = [one for one in spans_of(database, job_id) if not one.for_profile]
    assert len(spans) >= 2
    assert spans[0].noise_scale is None  # nothing was measured before it trained
    assert all((one.noise_scale or 0.0) > 0 for one in spans[1:])
    with database.session_scope(writes=False) as session:
        job = session.get_one(Job, job_id)
        changes = session.exec(select(BatchChange).where(BatchChange.job_id == job_id)).all()
        timeline = timeline_of(session, job)
        paces = [timeline.paces(one) for one in spans]
    assert changes
    processed = sum(pace.samples for of_span in paces for pace in of_span)
    assert processed == pytest.approx(job.processed_samples)
    assert max(len(of_span) for of_span in paces) > 1
