"""What happens when a part of a real Slurm dies, or somebody acts there by hand."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_samples import assert_history_is_whole, job
from slurm_cluster import SlurmCluster
from slurm_training import WAITS, SlurmTraining

from maat.launch.processes import marked
from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import JobState, Outcome


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmTraining]:
    found = SlurmTraining.on(slurm, tmp_path)
    yield found
    found.close()


def processes_of(site: SlurmTraining, attempt_id: str) -> list[int]:
    """Return the processes that bear the mark of an attempt."""
    folder = str(site.engine.directory(attempt_id))
    return [pid for pid, found in marked() if found == folder]


@pytest.mark.long
def test_a_job_cancelled_by_hand_runs_again_and_pauses_when_that_happens_twice(
    site: SlurmTraining,
) -> None:
    job_id = site.script(WAITS, gpu_count=2)
    site.round()
    site.runs(job_id)
    (first,) = site.attempts(job_id)
    site.slurm.run("scancel", str(first.engine_id))
    site.look_until(lambda: site.has_ended(job_id))
    (ended,) = site.attempts(job_id)
    words = "It was cancelled in Slurm, not by Maat."
    assert (ended.outcome, ended.reason) == (Outcome.CANCELLED, words)
    assert site.state(job_id) == JobState.PREEMPTED
    assert site.events(job_id)[-1]["cause"] == "cancelled-there"
    site.round()
    site.runs(job_id, attempt=2)
    site.slurm.run("scancel", str(site.attempts(job_id)[-1].engine_id))
    site.look_until(lambda: site.has_ended(job_id))
    assert site.state(job_id) == JobState.PREEMPTED
    site.round()
    assert len(site.attempts(job_id)) == 2, "it pauses"
    row = job(site.database, job_id)
    assert row.reason_code == ReasonCode.HELD_BACK
    said = sentence_of(row.reason_code, row.reason_evidence)
    assert words in said
    assert "cancel it in Maat" in said
    site.wind(601.0)
    site.round()
    site.runs(job_id, attempt=3)
    assert_history_is_whole(site.database, site.cluster_id)


def test_a_controller_that_is_killed_loses_nothing(site: SlurmTraining) -> None:
    job_id = site.script(f"[ -e {site.folder}/done ] && exit 0; {WAITS}", gpu_count=2)
    site.round()
    site.runs(job_id)
    before = (site.attempts(job_id), site.holds(), site.faults())
    site.slurm.save_jobs()
    site.slurm.kill("slurmctld")
    site.look()
    assert (site.attempts(job_id), site.holds(), site.faults()) == before
    assert site.state(job_id) == JobState.RUNNING
    site.slurm.start_controller()
    site.slurm.until(lambda: bool(site.slurm.states()))
    site.look()
    assert [each.state for each in site.attempts(job_id)] == ["running"]
    site.change(job_id, cancel_requested=True)
    site.note()
    site.look_until(lambda: site.has_ended(job_id))
    assert site.outcomes(job_id) == [Outcome.STOPPED]
    assert site.attempts(job_id)[0].exits == {"0": 143, "1": 143}
    assert site.logs(job_id) == ["ready\nsaved\n"] * 2


@pytest.mark.long
def test_a_job_on_a_node_whose_slurmd_died_saves_and_ends_when_it_is_told_to(
    site: SlurmTraining,
) -> None:
    job_id = site.script(WAITS, gpu_count=1, gpu_types=["t4"])
    site.round()
    site.runs(job_id)
    (node,) = site.attempts(job_id)[0].gpus_by_node
    site.slurm.kill(f"slurmd {node}")
    site.change(job_id, cancel_requested=True)
    site.note()
    site.look_until(lambda: site.has_ended(job_id))
    assert site.state(job_id) == JobState.CANCELLED
    assert site.logs(job_id) == ["ready\nsaved\n"]
    assert not processes_of(site, site.attempts(job_id)[0].id)
    site.slurm.start_node(node)


@pytest.mark.long
def test_a_controller_that_forgets_the_start_of_a_job_loses_it_and_it_runs_again(
    site: SlurmTraining,
) -> None:
    job_id = site.script(WAITS, gpu_count=1, gpu_types=["t4"])
    site.round()
    site.runs(job_id)
    (first,) = site.attempts(job_id)
    site.slurm.kill("slurmctld")  # it saves the start of a job some seconds later
    site.slurm.start_controller()
    site.slurm.until(lambda: bool(site.slurm.states()))
    site.look_until(lambda: site.has_ended(job_id))
    assert not processes_of(site, first.id), "its GPUs are given to others now"
    site.round()
    site.runs(job_id, attempt=2)
    assert site.logs(job_id) == ["ready\n"]
    assert_history_is_whole(site.database, site.cluster_id)


@pytest.mark.long
def test_a_lost_node_takes_its_attempt_along_and_what_still_runs_there_is_fenced(
    site: SlurmTraining,
) -> None:
    job_id = site.script(WAITS, gpu_count=2, gpu_types=["t4"])
    site.round()
    site.runs(job_id)
    (first,) = site.attempts(job_id)
    (node,) = first.gpus_by_node
    site.slurm.kill(f"slurmd {node}")
    site.look_until(lambda: site.has_ended(job_id))
    (lost,) = site.attempts(job_id)
    assert lost.outcome == Outcome.LOST
    assert node in lost.reason
    assert site.faults()[node]
    fence = site.folder / "shared" / site.cluster_id / "jobs" / job_id / "checkpoints" / "fence"
    assert fence.read_text() == "1"
    assert processes_of(site, first.id), "Slurm leaves ranks on a node that it calls down"
    site.round()
    site.runs(job_id, attempt=2)
    assert node not in site.attempts(job_id)[-1].gpus_by_node
    assert fence.read_text() == "2"
    site.slurm.start_node(node)
    site.look_until(lambda: site.faults()[node] is None)
    site.slurm.until(lambda: not processes_of(site, first.id))
    assert site.attempts(job_id)[-1].state == "running"
    assert_history_is_whole(site.database, site.cluster_id)


@pytest.mark.long
def test_a_job_whose_supervisor_is_killed_is_silent_and_then_ended(site: SlurmTraining) -> None:
    job_id = site.script(WAITS, stop_seconds=1.0)
    site.round()
    site.runs(job_id)
    (first,) = site.attempts(job_id)
    assert ranks_of(site, first.id)
    for pid in supervisors_of(site):
        os.kill(pid, signal.SIGKILL)
    site.slurm.until(lambda: not ranks_of(site, first.id))
    site.change_attempt(first.id, reports=True, reported_seconds=first.running_seconds)
    site.look()
    assert site.attempt_state(job_id) == "running", "Slurm says that all is well"
    site.wind(301.0)
    site.look_until(lambda: site.has_ended(job_id))
    assert site.outcomes(job_id) == [Outcome.FAILED]
    assert site.attempts(job_id)[0].reason == "It did not report any more."
    assert site.holds() == []


@pytest.mark.long
def test_a_job_that_reports_nothing_and_lost_its_supervisor_is_lost_though_slurm_calls_it_running(
    site: SlurmTraining,
) -> None:
    job_id = site.script(WAITS, stop_seconds=1.0)
    site.round()
    site.runs(job_id)
    (first,) = site.attempts(job_id)
    for pid in supervisors_of(site):
        os.kill(pid, signal.SIGKILL)
    site.slurm.until(lambda: not ranks_of(site, first.id))
    site.look()
    assert site.attempt_state(job_id) == "running", "it may only be late"
    sign = site.engine.directory(first.id) / "rank-0.alive"
    os.utime(sign, (sign.stat().st_mtime - 200.0,) * 2)
    site.look()
    for _ in range(2):
        site.wind(11.0)
        site.look()
    site.look_until(lambda: site.has_ended(job_id))
    (lost,) = site.attempts(job_id)
    assert lost.outcome == Outcome.LOST
    assert "no life" in lost.reason
    assert site.holds() == []
    site.round()
    site.runs(job_id, attempt=2)


def ranks_of(site: SlurmTraining, attempt_id: str) -> list[int]:
    return [pid for pid in processes_of(site, attempt_id) if "/bin/sh" in command_of(pid)]


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def supervisors_of(site: SlurmTraining) -> list[int]:
    """Return what supervises the steps of this Slurm."""
    wanted = f"SLURM_CONF={site.slurm.conf}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            process = Path("/proc", entry)
            try:
                name, environment = (process / "comm").read_text(), (process / "environ")
                if name == "slurmstepd\n" and wanted in environment.read_bytes():
                    found.append(int(entry))
            except OSError:
                continue
    assert found
    return found
