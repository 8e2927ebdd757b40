"""The answers of every version mean the same to the engine, and to both imports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from slurm_versions import answers, version_of

from maat.scheduling.errors import TraceError
from maat.workloads.cluster_text import FoundCluster, read_cluster
from maat.workloads.importing import ImportSettings, MappingRule, import_workload
from worker.engines.protocol import Phase
from worker.engines.slurm_answers import jobs_of, nodes_of

A100 = "nvidia_a100-sxm4-80gb"
OF_NODES = [*answers("sinfo.json"), *answers("scontrol-show-node.json")]
OF_TEXT = [*answers("sinfo.txt"), *answers("scontrol-show-node.txt")]


def named(file: Path) -> str:
    return f"{version_of(file)}-{file.stem}"


@pytest.mark.parametrize("file", OF_NODES, ids=named)
def test_the_engine_finds_every_node_with_its_gpus_and_why_one_is_out(file: Path) -> None:
    found = nodes_of(file.read_text(), partition="maat")
    assert [(each.node.name, each.node.gpu_count, each.node.up) for each in found] == [
        ("gpu01", 4, True),
        ("gpu02", 4, True),
        ("gpu03", 4, False),
        ("gpu04", 4, True),
        ("mig01", 8, True),
    ]
    assert [each.slurm_type for each in found] == [A100] * 4 + ["a100_3g.20gb"]
    assert [each.shards_per_gpu for each in found] == [2, 0, 0, 0, 0]
    assert found[2].node.reason == "Slurm has it as IDLE+DRAIN: bad disk, swap it"


@pytest.mark.parametrize("file", OF_NODES, ids=named)
def test_a_node_of_several_partitions_is_in_each_of_them(file: Path) -> None:
    text = file.read_text()
    assert [each.node.name for each in nodes_of(text, partition="debug")] == ["gpu01"]
    assert nodes_of(text, partition="cpu") == []
    assert len(nodes_of(text, partition=None)) == 5


@pytest.mark.parametrize("file", answers("squeue.json"), ids=named)
def test_the_engine_knows_what_each_job_holds_and_how_it_ended(file: Path) -> None:
    found = jobs_of(file.read_text(), folder="/shared/attempts")
    assert {name: each.phase for name, each in found.items()} == {
        "att_0": Phase.RUNNING,
        "att_1": Phase.RUNNING,
        "att_2": Phase.QUEUED,
        "att_3": Phase.ENDED,
        "att_4": Phase.QUEUED,
    }
    assert found["att_0"].gpus_by_node == {"gpu02": (0,)}
    assert found["att_1"].gpus_by_node == {"gpu01": (0, 1), "gpu02": (1, 2)}
    assert (found["att_3"].state, found["att_3"].exit_code) == ("FAILED", 2)
    assert found["att_2"].why == "Resources"
    assert {name for name, each in found.items() if each.wakes} == {"att_4"}
    assert found["att_4"].state == "CONFIGURING"
    assert all(each.ended_at > 1e9 for name, each in found.items() if name != "att_2")


def of_site(found: FoundCluster) -> tuple[object, ...]:
    nodes = [(node.name, node.gpu_type, node.gpu_count) for node in found.nodes]
    left = {each.name: each.why for each in found.left_out}
    return nodes, left, dict(found.renamed)


SITE = (
    [(f"gpu0{number}", "a100", 4) for number in (1, 2, 3, 4)],
    {
        "cpu01": "has no GPUs",
        "mig01": "has slices of GPUs (8 a100_3g.20gb) and no whole GPUs",
    },
    {A100: "a100"},
)


@pytest.mark.parametrize("file", [*OF_NODES, *OF_TEXT], ids=named)
def test_the_import_of_a_cluster_finds_the_same_in_every_form(file: Path) -> None:
    found = read_cluster(file.read_text())
    assert of_site(found) == SITE
    assert [node.name for node in found.nodes if node.out_of_service] == ["gpu03"]
    assert [node.name for node in found.nodes if node.is_asleep] == ["gpu04"]


@pytest.mark.parametrize("file", answers("slurm.conf"), ids=named)
def test_slurm_conf_names_the_site_but_not_what_became_of_it(file: Path) -> None:
    found = read_cluster(file.read_text())
    assert found.format == "slurm.conf"
    assert of_site(found) == SITE
    assert not [node for node in found.nodes if node.out_of_service or node.is_asleep]


@pytest.mark.parametrize("file", answers("squeue.json"), ids=named)
def test_another_answer_is_no_accounting(file: Path) -> None:
    with pytest.raises(TraceError, match="is no answer of sacct --json"):
        import_workload(file, ImportSettings("sacct"))


@pytest.mark.parametrize("text", ["{", '{"jobs": 3}', '{"jobs": []}', '{"errors": ["away"]}'])
def test_json_without_jobs_is_refused_with_what_to_ask_sacct_for(text: str) -> None:
    with pytest.raises(TraceError) as refused:
        import_workload(text, ImportSettings("sacct"))
    assert refused.value.remedy


@pytest.mark.parametrize(
    "changes", [{}, {"any_gpu_type": True}, {"rule": MappingRule.SIZE_CLASS}], ids=str
)
def test_a_slice_counts_as_no_gpu_under_any_rule(changes: dict[str, Any]) -> None:
    (file,) = [file for file in answers("sacct.txt") if version_of(file) == "24.11"]
    found = import_workload(file, ImportSettings("sacct", **changes))
    assert [job.name for job in found.workload.jobs] == ["1", "2"]
    named_ = ImportSettings("sacct", gpu_types={"a100_3g.20gb": "a30"}, **changes)
    assert len(import_workload(file, named_).workload.jobs) == 3


@pytest.mark.parametrize("file", [*answers("sacct.txt"), *answers("sacct.json")], ids=named)
def test_the_import_of_jobs_finds_the_same_gpus_in_every_form(file: Path) -> None:
    found = import_workload(file, ImportSettings("sacct"))
    assert [
        (job.name, job.gpu_count, job.gpu_types, job.work_scale, job.tenant)
        for job in found.workload.jobs
    ] == [("1", 4, ("a100",), 3600.0, "vision"), ("2", 1, None, 3600.0, "vision")]
    assert {each.rows[0]: each.cause for each in found.dropped} == {
        4: "it had no GPUs",
        5: "its GPU type a100_3g.20gb is not known: it is a slice of a GPU",
    }
