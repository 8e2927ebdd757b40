"""Commands on a real Slurm: rounds, jobs of Slurm, their processes, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_samples import assert_history_is_whole, spans_of
from slurm_cluster import SlurmCluster
from slurm_training import UNTIL_DONE, WAITS, SlurmTraining

from maat.vocabulary import JobState, Outcome, StopReason


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmTraining]:
    found = SlurmTraining.on(slurm, tmp_path)
    yield found
    found.close()


def test_the_nodes_of_a_cluster_are_those_of_its_partition(site: SlurmTraining) -> None:
    assert site.faults() == {"t4-0": None, "t4-1": None, "a100-0": None}


def test_a_command_starts_moves_to_another_type_when_slurm_drains_its_nodes_and_ends(
    site: SlurmTraining,
) -> None:
    job_id = site.script(UNTIL_DONE, gpu_count=2)
    site.round()
    site.runs(job_id)
    first = site.attempts(job_id)[-1]
    for node in [name for name in site.faults() if name.startswith(first.gpu_type)]:
        site.slurm.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=repair")
    site.look_until(lambda: any(site.faults().values()))
    site.round()
    site.runs(job_id, attempt=2)
    moved, second = site.attempts(job_id)
    assert (moved.outcome, moved.stop_reason) == (Outcome.STOPPED, StopReason.MOVED)
    assert moved.exits == {"0": 143, "1": 143}
    assert second.gpu_type != first.gpu_type
    assert "repair" in str(site.faults())
    (site.folder / "done").touch()
    site.ask_to_end(job_id, StopReason.MOVED)
    site.look_until(lambda: site.has_ended(job_id))
    assert site.holds() == []
    assert site.log(job_id) == "ready\nsaved\n"
    site.round()
    site.look_until(lambda: site.outcomes(job_id)[-1] == Outcome.SUCCEEDED)
    assert site.state(job_id) == JobState.SUCCEEDED
    assert_history_is_whole(site.database, site.cluster_id)


def test_the_gpus_of_an_attempt_are_those_that_slurm_names(site: SlurmTraining) -> None:
    by_hand = ("sbatch", "--wrap=sleep 600", "--partition=maat", "--nodelist=a100-0", "--chdir=/")
    site.slurm.run(*by_hand, "--gres=gpu:a100:1", "--output=/dev/null")
    site.slurm.until(lambda: "mixed" in site.slurm.states().values())
    job_id = site.script(WAITS, gpu_count=1, gpu_types=["a100"])
    site.decide()
    assert site.attempts(job_id)[-1].gpus_by_node == {"a100-0": [0]}
    site.look()
    assert len(site.holds()) == 1
    site.runs(job_id)
    assert site.attempts(job_id)[-1].gpus_by_node == {"a100-0": [1]}
    assert site.holds() == [("a100-0", 1)]
    assert site.state(job_id) == JobState.RUNNING
    site.look_until(lambda: len(spans_of(site.database, job_id)) == 2)
    ordered, named = spans_of(site.database, job_id)
    assert (ordered.gpu_count, named.gpu_count) == (1, 1)
    assert ordered.to_seconds == named.from_seconds
    assert named.to_seconds is None
    assert_history_is_whole(site.database, site.cluster_id)


def test_a_gang_that_slurm_can_never_start_is_refused_in_slurms_words(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    site = SlurmTraining.on(slurm, tmp_path, memory_gib_per_gpu=1000.0)
    job_id = site.script(WAITS)
    site.round()
    site.look_until(lambda: site.has_ended(job_id))
    (attempt,) = site.attempts(job_id)
    assert attempt.outcome == Outcome.REFUSED
    assert "configuration is not available" in attempt.reason
    assert site.holds() == []
    site.close()


def test_a_gang_that_waits_too_long_leaves_the_queue(site: SlurmTraining) -> None:
    by_hand = ("sbatch", "--wrap=sleep 600", "--partition=maat", "--nodelist=a100-0", "--chdir=/")
    site.slurm.run(*by_hand, "--gres=gpu:a100:2", "--output=/dev/null")
    site.slurm.until(lambda: "mixed" in site.slurm.states().values())
    job_id = site.script(WAITS, gpu_count=2, gpu_types=["a100"])
    site.round()
    waits = ("squeue", "-h", "--states=PENDING", "--format=%j %R")
    site.slurm.until(lambda: "Resources" in site.slurm.run(*waits))
    site.wind(61.0)
    site.look_until(lambda: site.has_ended(job_id))
    (attempt,) = site.attempts(job_id)
    assert (attempt.outcome, attempt.stop_reason) == (Outcome.REFUSED, StopReason.NOT_STARTED)
    assert attempt.reason == "Slurm has it as PENDING: Resources."
    assert "maat-att" not in site.slurm.run("squeue", "-h")
    assert site.holds() == []
    assert_history_is_whole(site.database, site.cluster_id)
