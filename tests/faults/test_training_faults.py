"""What a job and its owner see when its attempts end badly: real processes, rounds by hand."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_samples import assert_history_is_whole, job
from small_disk import SmallDisk
from training_samples import TrainingCluster

from backend.attempts.reports import take_report
from backend.database import Database
from backend.jobs.explanation import explain
from backend.jobs.repository import last_failure, last_setback
from backend.migrations import upgrade
from backend.settings import Settings
from backend.sight import Sight
from frontend.components.events import event_words
from maat.api.attempts import ReportBody
from maat.api.job_answers import ExplanationOut
from maat.api.job_words import state_in_words
from maat.launch.attempt_dir import AttemptDir
from maat.scheduling.events import EventKind
from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import AttemptState, JobState, Outcome, StopReason

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts")

SLEEP = ("/bin/sleep", "600")
PATIENCE_SECONDS = 120.0
TRAINS = Path(__file__).with_name("full_disk_script.py")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[TrainingCluster]:
    database = Database(f"sqlite:///{tmp_path / 'maat.db'}")
    upgrade(database)
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", allow_commands=True)
    found = TrainingCluster(database, settings, tmp_path)
    yield found
    found.close()
    database.dispose()


def reason(cluster: TrainingCluster, job_id: str) -> tuple[str, str]:
    row = job(cluster.database, job_id)
    return row.reason_code, sentence_of(row.reason_code, row.reason_evidence)


def explanation(cluster: TrainingCluster, job_id: str) -> ExplanationOut:
    with cluster.database.session_scope(writes=False) as session:
        found = last_setback(session, job_id)
        return explain(job(cluster.database, job_id), Sight(None), [], setback=found)


def folder_of(cluster: TrainingCluster, job_id: str) -> AttemptDir:
    return AttemptDir(str(cluster.engine.directory(cluster.attempts(job_id)[-1].id)))


def runs(cluster: TrainingCluster, job_id: str, attempt: int) -> None:
    cluster.look_until(
        lambda: (
            len(cluster.attempts(job_id)) == attempt
            and cluster.attempt_state(job_id) == AttemptState.RUNNING
        )
    )


def test_a_crash_loop_is_told_from_a_lost_supervisor(cluster: TrainingCluster) -> None:
    crashes = cluster.submit("/bin/sh", "-c", "echo no such file; exit 7", max_retries=2)
    lasting = cluster.submit(*SLEEP)
    cluster.round()
    runs(cluster, lasting, 1)
    os.kill((folder_of(cluster, lasting).read("started.json") or {})["shim"][0], signal.SIGKILL)
    cluster.look_until(lambda: cluster.has_ended(lasting) and cluster.has_ended(crashes))
    assert cluster.state(crashes) == JobState.PREEMPTED
    first = cluster.events(crashes)[-1]
    assert (first["cause"], first["outcome"], first["exit_codes"]) == ("crash", "failed", {"0": 7})
    code, said = reason(cluster, crashes)
    assert code == ReasonCode.HELD_BACK
    assert "Its attempt 1 failed: Rank 0 ended with exit code 7." in said
    assert "pause of 10 s" in said
    assert explanation(cluster, crashes)["last_lines"] == ["no such file"]
    held = {"evidence": job(cluster.database, crashes).reason_evidence}
    assert state_in_words({"state": "preempted", "reason": held}) == "failed, is tried again"
    lost = cluster.events(lasting)[-1]
    assert (lost["cause"], lost["outcome"]) == ("engine-lost", "lost")
    assert event_words("state", lost, state=JobState.PREEMPTED) == (
        "preempted: its node or its supervisor was lost"
    )
    code, said = reason(cluster, lasting)
    assert code == ReasonCode.NOT_YET_CONSIDERED
    assert said == (
        "Its attempt 1 ended: Its supervisor was killed. The next round considers it again."
    )
    held = {"evidence": job(cluster.database, lasting).reason_evidence}
    assert state_in_words({"state": "preempted", "reason": held}) == "lost, is started again"
    cluster.round()
    runs(cluster, lasting, 2)
    for attempt in (2, 3):
        cluster.wind(60.0)
        cluster.round()
        cluster.look_until(
            lambda attempt=attempt: (
                len(cluster.attempts(crashes)) == attempt and cluster.has_ended(crashes)
            )
        )
    assert cluster.state(crashes) == JobState.FAILED
    last = cluster.events(crashes)[-1]
    assert (last["cause"], last["failures"]) == ("crash-loop", 3)
    assert event_words("state", last, state=JobState.FAILED) == "failed: it crashes in a loop"
    with cluster.database.session_scope(writes=False) as session:
        told = explain(
            job(cluster.database, crashes),
            Sight(None),
            [],
            failure=last_failure(session, crashes),
        )
    assert "It crashes in a loop: its last 3 attempts failed" in told["primary"]["sentence"]
    assert told["last_lines"] == ["no such file"]
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def test_what_the_engine_refused_is_tried_again_after_a_pause(cluster: TrainingCluster) -> None:
    allowed = cluster.settings
    cluster.settings = allowed.model_copy(update={"allow_commands": False})
    job_id = cluster.submit(*SLEEP)
    cluster.round()
    assert cluster.outcomes(job_id) == [Outcome.REFUSED]
    assert cluster.state(job_id) == JobState.PREEMPTED
    assert cluster.events(job_id)[-1]["cause"] == "refused"
    code, said = reason(cluster, job_id)
    assert code == ReasonCode.HELD_BACK
    assert "MAAT_ALLOW_COMMANDS" in said
    cluster.settings = allowed
    cluster.round()
    assert len(cluster.attempts(job_id)) == 1
    cluster.wind(11.0)
    cluster.round()
    runs(cluster, job_id, 2)


def test_a_job_whose_disk_is_full_has_failed_and_not_lost_its_supervisor(
    cluster: TrainingCluster, small_disk: SmallDisk
) -> None:
    cluster.settings = cluster.settings.model_copy(update={"data_dir": small_disk.path})
    job_id = cluster.submit("/bin/sh", "-c", f"cat /dev/zero > {small_disk.path}/rest")
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    (attempt,) = cluster.attempts(job_id)
    assert (attempt.outcome, attempt.exits) == (Outcome.FAILED, {"0": 1})
    assert cluster.state(job_id) == JobState.FAILED
    told = cluster.events(job_id)[-1]
    assert told["cause"] == "crash"
    assert f"The disk of {small_disk.path}" in told["reason"]
    assert "was full: make room there." in told["reason"]
    with cluster.database.session_scope(writes=False) as session:
        row, failure = job(cluster.database, job_id), last_failure(session, job_id)
    why = explain(row, Sight(None), [], failure=failure)["primary"]["sentence"]
    assert "make room there" in why

    other = cluster.submit(*SLEEP)
    cluster.round()
    assert cluster.outcomes(other) == [Outcome.REFUSED]
    code, said = reason(cluster, other)
    assert (code, "make room there" in said) == (ReasonCode.HELD_BACK, True)
    small_disk.make_room()
    cluster.wind(11.0)
    cluster.round()
    runs(cluster, other, 2)


@pytest.mark.long
@pytest.mark.needs_torch
def test_a_full_disk_and_a_damaged_checkpoint_cost_one_checkpoint_each(
    cluster: TrainingCluster,
) -> None:
    pytest.importorskip("torch")
    full = cluster.folder / "full"
    root = Path(__file__).resolve().parents[2]
    job_id = cluster.submit(
        sys.executable, str(TRAINS), env={"FULL": str(full), "PYTHONPATH": str(root)}, max_retries=9
    )
    kept = cluster.settings.data_path / "training" / cluster.cluster_id / "jobs" / job_id
    cluster.round()
    runs(cluster, job_id, 1)
    until(lambda: len(checkpoints(kept)) == 2)
    full.touch()
    until(lambda: "no checkpoint was written" in cluster.log(job_id))
    before = checkpoints(kept)
    tell(cluster, job_id)
    (trouble,) = cluster.events(job_id, EventKind.CHECKPOINT)
    assert trouble["reason"].startswith("No checkpoint could be written: ")
    assert f"Look for room on the disk of {kept}" in trouble["reason"]
    assert event_words("checkpoint", trouble) == "trouble with a checkpoint"
    assert cluster.attempt_state(job_id) == AttemptState.RUNNING, "training goes on"
    cluster.ask_to_end(job_id, StopReason.PREEMPTED)
    cluster.look_until(lambda: cluster.has_ended(job_id))
    first = cluster.attempts(job_id)[0]
    assert (first.outcome, first.exits) == (Outcome.STOPPED, {"0": 74})
    assert checkpoints(kept) == before
    cluster.note()
    unsaved = cluster.events(job_id, EventKind.CHECKPOINT)[-1]
    assert "could not write its checkpoint (exit code 74)" in unsaved["reason"]
    assert any("no checkpoint was written" in line for line in unsaved["last_lines"])
    full.unlink()

    cluster.round()
    runs(cluster, job_id, 2)
    until(lambda: "from step" in cluster.log(job_id))
    assert f"from step {before[-1]}\n" in cluster.log(job_id)
    until(lambda: checkpoints(kept)[-1] > before[-1])
    pid = (folder_of(cluster, job_id).read("started.json") or {})["ranks"]["0"][0]
    os.kill(pid, signal.SIGKILL)
    cluster.look_until(lambda: cluster.has_ended(job_id))
    older, newest = checkpoints(kept)
    spoilt = next((kept / "checkpoints").glob(f"step-*{newest}")) / "state.pt"
    spoilt.write_bytes(spoilt.read_bytes()[:-100])
    assert cluster.state(job_id) == JobState.PREEMPTED
    cluster.wind(11.0)
    cluster.round()
    runs(cluster, job_id, 3)
    until(lambda: "from step" in cluster.log(job_id))
    assert f"from step {older}\n" in cluster.log(job_id)
    tell(cluster, job_id)
    damaged = cluster.events(job_id, EventKind.CHECKPOINT)[-1]
    assert "is damaged, and not used" in damaged["reason"]
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def tell(cluster: TrainingCluster, job_id: str) -> None:
    """Hand what the agent has left in its folder to the service, as a report of it."""
    attempt = cluster.attempts(job_id)[-1]
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.update(folder_of(cluster, job_id).read("report.json") or {})
        return found.get("trouble") is not None

    until(is_there)
    del found["at"]
    found["sequence"] = max(found["sequence"], 1)  # 0 before the first one is sent
    body = ReportBody.model_validate(found)
    with cluster.database.session_scope() as session:
        take_report(session, attempt.id, body)
    cluster.note()


def checkpoints(kept: Path) -> list[int]:
    found = (kept / "checkpoints").glob("step-*/DONE")
    return sorted(int(each.parent.name.removeprefix("step-")) for each in found)


def until(there: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)
