"""What is read from Slurm's JSON, and what sbatch is told."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from maat.api.clusters import SlurmParameters
from maat.slurm.json_values import UnreadableAnswer
from worker.engines.protocol import EngineNode, Order, Phase
from worker.engines.slurm_answers import SlurmJob, SlurmNode, jobs_of, nodes_of
from worker.engines.slurm_batch import batch_arguments, batch_script

FOLDER = "/shared/attempts"


def node(name: str = "n1", gres: str = "gpu:t4:4", **fields: Any) -> dict[str, Any]:
    known = {"state": "idle", "state_flags": [], "reason": "", "partitions": ["main"]}
    return {"name": name, "gres": gres, **known, **fields}


def nodes(*entries: dict[str, Any], partition: str | None = None) -> list[SlurmNode]:
    return nodes_of(json.dumps({"errors": [], "nodes": entries}), partition=partition)


def job(state: object = "RUNNING", **fields: Any) -> dict[str, Any]:
    return {
        "job_id": 7,
        "name": "maat-att_1",
        "job_state": state,
        "current_working_directory": f"{FOLDER}/att_1",
        "het_job_id": 0,
        "exit_code": 0,
        "end_time": 5,
        "state_reason": "None",
        "gres_detail": ["gpu:t4:2(IDX:0,3)"],
        "job_resources": {"allocated_nodes": [{"nodename": "n1"}]},
        **fields,
    }


def jobs(*entries: dict[str, Any]) -> dict[str, SlurmJob]:
    return jobs_of(json.dumps({"jobs": entries}), folder=FOLDER)


@pytest.mark.parametrize(
    ("gres", "found"),
    [
        ("gpu:t4:4", ("t4", 4, 0)),
        ("gpu:a100:8(S:0-1)", ("a100", 8, 0)),
        ("gpu:a100:8,shard:a100:16", ("a100", 8, 2)),
        ("gpu:a100:8,shard:16", ("a100", 8, 2)),
        ("gpu:4", ("gpu", 4, 0)),
        ("gpu:NVIDIA_H100:2", ("nvidia_h100", 2, 0)),
        ("craynetwork:4,gpu:t4:2", ("t4", 2, 0)),
        ("gpu:1g.5gb:7", ("1g.5gb", 7, 0)),
        ("gpu:t4:2(S:0),gpu:t4:2(S:1)", ("t4", 4, 0)),
    ],
)
def test_a_node_has_what_slurm_says(gres: str, found: tuple[str, int, int]) -> None:
    (read,) = nodes(node(gres=gres))
    assert (read.node.gpu_type, read.node.gpu_count, read.shards_per_gpu) == found
    assert read.node.up


@pytest.mark.parametrize("gres", ["", "shard:4", "gpu:0", "gpu:t4:0", "license:3"])
def test_a_node_without_gpus_is_none(gres: str) -> None:
    assert nodes(node(gres=gres)) == []


def test_a_node_of_two_types_cannot_be_used_and_says_why() -> None:
    (read,) = nodes(node(gres="gpu:t4:1,gpu:a100:2"))
    assert not read.node.up
    assert "several types: t4, a100" in read.node.reason


@pytest.mark.parametrize(
    ("state", "flags", "up"),
    [
        ("idle", [], True),
        ("mixed", [], True),
        ("allocated", ["COMPLETING"], True),
        ("idle", ["DRAIN"], False),
        ("idle", ["NOT_RESPONDING"], False),
        ("down", [], False),
        ("down", ["NOT_RESPONDING"], False),
        ("unknown", [], False),
        ("idle", ["POWERED_DOWN"], True),
        ("idle", ["DRAIN", "POWERED_DOWN"], False),
        ("idle", ["CLOUD", "NOT_RESPONDING", "POWERING_UP"], True),
        (["IDLE"], None, True),
        (["IDLE", "DRAIN"], None, False),
        (["MIXED", "PLANNED"], None, True),
        (["DOWN", "NOT_RESPONDING"], None, False),
        ("error", [], False),
        (None, None, False),
    ],
)
def test_a_node_serves_only_if_nothing_speaks_against_it(state: Any, flags: Any, up: bool) -> None:
    (read,) = nodes(node(state=state, state_flags=flags, reason="power"))
    assert read.node.up is up
    assert ("power" in read.node.reason) is not up


def test_only_the_nodes_of_the_partition_count_and_are_ordered_by_name() -> None:
    entries = [node("b"), node("a"), node("c", partitions=["other"])]
    assert [each.node.name for each in nodes(*entries, partition="main")] == ["a", "b"]
    assert [each.node.name for each in nodes(*entries)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("PENDING", Phase.QUEUED),
        ("CONFIGURING", Phase.QUEUED),
        (["RUNNING", "CONFIGURING"], Phase.QUEUED),
        ("RUNNING", Phase.RUNNING),
        (["RUNNING"], Phase.RUNNING),
        ("COMPLETING", Phase.RUNNING),
        (["CANCELLED", "COMPLETING"], Phase.RUNNING),
        ("COMPLETED", Phase.ENDED),
        ("NODE_FAIL", Phase.ENDED),
        ("CANCELLED", Phase.ENDED),
        ("OUT_OF_MEMORY", Phase.ENDED),
        ("NEW_WORD", Phase.UNKNOWN),
        ([], Phase.UNKNOWN),
    ],
)
def test_a_job_is_as_far_as_slurm_says(state: Any, phase: Phase) -> None:
    assert jobs(job(state))["att_1"].phase is phase


def test_a_job_whose_nodes_boot_has_not_begun_and_waits_for_them() -> None:
    for state in ("CONFIGURING", ["RUNNING", "CONFIGURING"]):
        found = jobs(job(state))["att_1"]
        assert (found.phase, found.wakes, found.state) == (Phase.QUEUED, True, "CONFIGURING")
    assert not jobs(job("PENDING"))["att_1"].wakes


def test_the_gpus_of_a_job_are_those_of_each_of_its_nodes() -> None:
    two = {"job_resources": {"allocated_nodes": [{"nodename": "n1"}, {"nodename": "n2"}]}}
    details = ["gpu:t4:2(IDX:0-1)", "gpu:t4:3(IDX:0,2-3)"]
    found = jobs(job(gres_detail=details, **two))["att_1"]
    assert found.gpus_by_node == {"n1": (0, 1), "n2": (0, 2, 3)}


@pytest.mark.parametrize(
    "details", [[], ["gpu:t4:2"], ["gpu:t4:2(IDX:N/A)"], ["gpu:t4:2(IDX:)"], ["", ""], None]
)
def test_gpus_that_slurm_does_not_name_are_not_known(details: list[str]) -> None:
    assert jobs(job(gres_detail=details))["att_1"].gpus_by_node is None


def test_a_job_of_components_is_one_and_ends_with_the_last() -> None:
    first = job(job_id=7, het_job_id=7)
    second = job(
        job_id=8,
        het_job_id=7,
        gres_detail=["gpu:t4:1(IDX:1)"],
        job_resources={"allocated_nodes": [{"nodename": "n2"}]},
    )
    both = jobs(first, second)["att_1"]
    assert (both.id, both.gpus_by_node) == (7, {"n1": (0, 3), "n2": (1,)})
    ended = {**first, "job_state": "COMPLETED"}
    assert jobs(ended, second)["att_1"].phase is Phase.RUNNING
    lost = jobs(ended, {**second, "job_state": "NODE_FAIL"})["att_1"]
    assert (lost.phase, lost.state) == (Phase.ENDED, "NODE_FAIL")


def test_of_two_jobs_of_one_attempt_the_living_one_counts() -> None:
    old, new = job("RUNNING", job_id=7), job("CANCELLED", job_id=9)
    assert jobs(old, new)["att_1"].id == 7
    assert jobs({**old, "job_state": "FAILED"}, new)["att_1"].id == 9


def test_jobs_of_others_are_none_of_ours() -> None:
    assert jobs(job(name="train"), job(current_working_directory="/other/att_1")) == {}


@pytest.mark.parametrize(
    ("exit_code", "code"),
    [
        (0, 0),
        (512, 2),
        (36608, 143),
        (9, 137),
        ({"return_code": {"set": True, "number": 3}, "status": ["ERROR"]}, 3),
        (None, 0),
    ],
)
def test_the_exit_code_is_that_of_the_script(exit_code: Any, code: int) -> None:
    assert jobs(job("FAILED", exit_code=exit_code))["att_1"].exit_code == code


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"jobs": [{"name": 1}, 2]}', '{"jobs": null}'])
def test_what_is_no_answer_is_no_answer(text: str) -> None:
    with pytest.raises(UnreadableAnswer):
        jobs_of(text, folder=FOLDER)


def test_an_error_of_the_controller_is_told_in_words_with_what_to_do() -> None:
    text = json.dumps({"jobs": [], "errors": [{"error": "Unspecified error", "errno": -1}] * 2})
    words = "Slurm says: Unspecified error. See whether slurmctld runs: `scontrol ping`."
    with pytest.raises(UnreadableAnswer, match=re.escape(words)):
        jobs_of(text, folder=FOLDER)


def order(gpus_by_node: dict[str, tuple[int, ...]], **changes: Any) -> Order:
    fields: dict[str, Any] = {"gpus_per_replica": 1, "shared": False, **changes}
    return Order(
        attempt_id="att_1",
        job_id="job_1",
        number=1,
        directory=Path(f"{FOLDER}/att_1"),
        checkpoint_directory=Path("/shared/jobs/job_1"),
        argv=("python", "train.py", "--secret"),
        cwd=Path("/home"),
        gpu_type="t4",
        gpus_by_node=gpus_by_node,
        stop_seconds=60.0,
        env={"A": "1"},
        **fields,
    )


def given(
    gpus_by_node: dict[str, tuple[int, ...]], *, slurm_type: str | None = "T4", **changes: Any
) -> list[list[str]]:
    """Return the arguments by component of the job."""
    parameters = SlurmParameters(shared_dir="/shared", **changes.pop("parameters", {}))
    known = {
        name: SlurmNode(EngineNode(name, "t4", 4, True), slurm_type, shards_per_gpu=4)
        for name in gpus_by_node
    }
    text = shlex.join(batch_arguments(order(gpus_by_node, **changes), parameters, known))
    return [shlex.split(part) for part in text.split(" : ")]


def test_equal_nodes_are_one_job_and_unequal_ones_its_components() -> None:
    ((first, *_),) = [given({"a": (0, 1), "b": (2, 3)})]
    assert "--nodelist=a,b" in first
    assert {"--nodes=2", "--ntasks-per-node=2", "--gres=gpu:T4:2"} <= set(first)
    three, one = given({"a": (0, 1, 2), "b": (0,)})
    assert {"--nodelist=a", "--ntasks-per-node=3", "--gres=gpu:T4:3"} <= set(three)
    assert {"--nodelist=b", "--ntasks-per-node=1", "--gres=gpu:T4:1"} <= set(one)
    assert "--job-name=maat-att_1" in three
    assert "--job-name=maat-att_1" in one


def test_no_component_of_a_job_is_requeued_and_each_runs_in_its_folder() -> None:
    for part in given({"a": (0,), "b": (0, 1)}):
        assert {"--no-requeue", f"--chdir={FOLDER}/att_1"} <= set(part)


def test_a_replica_of_several_gpus_is_one_task() -> None:
    limits = {"cpus_per_gpu": 4, "memory_gib_per_gpu": 1.5, "partition": "p", "account": "a"}
    (part,) = given({"a": (0, 1, 2, 3)}, gpus_per_replica=2, parameters=limits)
    assert {"--ntasks-per-node=2", "--gres=gpu:T4:4", "--cpus-per-task=8"} <= set(part)
    assert {"--mem=6144M", "--partition=p", "--account=a"} <= set(part)


def test_gpus_without_a_type_are_asked_without_one_and_shared_ones_as_shards() -> None:
    assert "--gres=gpu:1" in given({"a": (0,)}, slurm_type=None)[0]
    assert "--gres=shard:2" in given({"a": (0,)}, shared=True)[0]


def test_the_script_holds_a_path_with_any_character_as_one_word() -> None:
    parameters = SlurmParameters(shared_dir="/shared", python="/opt/my $(x) py/python")
    script = batch_script(parameters, commands="/usr/bin")
    said = subprocess.run(
        ["/bin/sh", "-c", "srun() { printf '%s\\n' \"$@\"; }\n" + script.replace("exec ", "")],
        capture_output=True,
        text=True,
        check=True,
        env={"SLURM_HET_SIZE": "3"},
    )
    words = said.stdout.splitlines()
    assert words[0] == "--het-group=0-2"
    assert words[-5:] == ["/opt/my $(x) py/python", "-P", "-m", "maat.launch.rank", "."]
