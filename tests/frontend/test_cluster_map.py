"""Tests of the data of the cluster map: stretches of GPUs, changes for a browser, and privacy."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import frontend_samples as samples
import pytest

from frontend.components.cluster_map import drawing_of
from frontend.figures.cluster_map import Known, map_changes, message, node_drawings
from frontend.pages.cluster.summary import note_of, without_nodes
from maat.figures.theme import READABLE_CONTRAST, contrast


def drawn(
    cells: list[dict[str, Any]], known: Known | None = None, scheme: str = "light"
) -> dict[str, Any]:
    changes = map_changes(cells, known, scheme=scheme)
    assert changes is not None
    return changes


def known_after(cells: list[dict[str, Any]], scheme: str = "light") -> Known:
    """What the script has drawn once it has drawn these cells."""
    return {"scheme": scheme, "digests": list(drawn(cells, scheme=scheme)["digests"].values())}


def test_gpus_of_one_job_side_by_side_are_one_stretch_and_every_gpu_is_in_one() -> None:
    nodes = node_drawings(samples.cells())

    told = [
        [(one["kind"], one["job"], one["first"], one["count"]) for one in node["stretches"]]
        for node in nodes
    ]
    assert told == [
        [("job", "job_a", 0, 2), ("free", None, 2, 2)],
        [("job", "job_b", 0, 4)],
        [("free", None, 0, 1), ("drained", None, 1, 1)],
    ]
    assert [(node["gpu_count"], node["held"], node["drained"]) for node in nodes] == [
        (4, 2, 0),
        (4, 4, 0),
        (2, 0, 1),
    ]


def test_neighbouring_jobs_differ_in_shade_and_a_job_keeps_its_own() -> None:
    cells = samples.cells()[:4]
    for cell, job in zip(cells, "wxyz", strict=True):
        cell.update(held=True, job_id=f"job_{job}", job_name=job, tenant="default")

    shades = [stretch["shade"] for stretch in node_drawings(cells)[0]["stretches"]]

    assert all(one != other for one, other in pairwise(shades))
    assert shades == [stretch["shade"] for stretch in node_drawings(cells)[0]["stretches"]]


def test_a_name_reads_on_every_shade_in_both_schemes() -> None:
    for scheme in ("light", "dark"):
        for gpu_type in drawn(samples.cells(), scheme=scheme)["looks"]["types"]:
            assert len({shade["fill"] for shade in gpu_type["shades"]}) == 5
            assert (
                min(contrast(shade["fill"], shade["ink"]) for shade in gpu_type["shades"])
                >= READABLE_CONTRAST
            )


def test_another_tenants_job_counts_without_name_or_link() -> None:
    cells = samples.cells()
    cells[2].update(held=True, job_id="other-1", job_name="another tenant's job", tenant=None)

    node = node_drawings(cells)[0]

    assert node["held"] == 3
    assert [(one["name"], one["job"]) for one in node["stretches"]] == [
        ("train a", "job_a"),
        ("another tenant's job (other-1)", None),
        ("free", None),
    ]


def test_a_browser_gets_only_the_nodes_that_changed_and_nothing_when_none_did() -> None:
    before, after = samples.cells(), samples.cells()
    after[8].update(held=True, job_id="job_c", job_name="train c", tenant="default")
    known = known_after(before)

    assert map_changes(before, known, scheme="light") is None
    changes = drawn(after, known)

    assert list(changes["nodes"]) == [2]
    assert changes["nodes"][2]["stretches"][0]["name"] == "train c"
    assert json.loads(json.dumps(changes))["count"] == 3


def test_a_node_that_was_removed_and_another_scheme_are_changes_too() -> None:
    known = known_after(samples.cells())

    fewer, dark = drawn(samples.cells()[:8], known), drawn(samples.cells(), known, scheme="dark")

    assert (fewer["count"], fewer["nodes"]) == (2, {})
    assert (dark["scheme"], dark["nodes"]) == ("dark", {})


def test_a_cluster_without_a_node_says_so_and_what_to_do() -> None:
    said = drawing_of([], None, scheme="light")
    remedy, way = "Jobs get GPUs as soon as it has some.", ("Add nodes", "/admin?tab=clusters")
    assert said == message("No node yet", remedy, way=way)


@pytest.mark.parametrize(
    ("executor", "parameters", "says"),
    [
        ("simulated", {}, "as soon as it has some"),
        ("local", {}, "as soon as it has some"),
        ("local", {"gpus": "found"}, "nvidia-smi -L"),
        ("slurm", {"shared_dir": "/shared"}, "scontrol show node"),
    ],
)
def test_why_a_cluster_may_have_no_node_depends_on_what_runs_its_jobs(
    executor: str, parameters: dict[str, str], says: str
) -> None:
    cluster: Any = {"executor": executor, "executor_parameters": parameters}
    assert says in without_nodes(cluster)


@pytest.mark.parametrize("count", [64, 2048])
def test_what_is_sent_grows_with_the_stretches_and_not_with_the_gpus(count: int) -> None:
    one = samples.cells()[0]
    cells = [
        {**one, "gpu": gpu, "node": f"n{gpu // 8}", "job_id": f"job_{gpu // 8}"}
        for gpu in range(count)
    ]

    assert sum(len(node["stretches"]) for node in node_drawings(cells)) == count // 8


def test_a_node_that_cannot_be_used_looks_drained_and_says_why() -> None:
    nodes = node_drawings(samples.cells(), {"n1": "The engine says that it is down."})
    assert (nodes[0]["drained"], nodes[0]["out"], nodes[0]["fault"]) == (
        0,
        4,
        "The engine says that it is down.",
    )
    held, out = nodes[0]["stretches"]
    assert (held["kind"], out["kind"], out["count"]) == ("job", "drained", 2)
    assert out["name"] == "out of service: The engine says that it is down"
    assert [(node["out"], node["fault"]) for node in nodes[1:]] == [(0, ""), (1, "")]


@pytest.mark.parametrize(
    ("executor", "parameters", "says"),
    [
        ("simulated", {}, "1 cluster second per second"),
        ("local", {}, "commands run on slots of this machine, which are no GPUs"),
        ("local", {"gpus": "found"}, "commands run on the GPUs of this machine"),
        ("slurm", {"partition": "gpu"}, "commands run on partition gpu of Slurm"),
        ("slurm", {"shared_dir": "/shared"}, "commands run on Slurm"),
    ],
)
def test_the_page_says_what_runs_the_jobs_of_a_cluster(
    executor: str, parameters: dict[str, str], says: str
) -> None:
    given = {"policy": "sia", "placer": "whole-node", "round_seconds": 60.0, "speed": 1.0}
    given |= {"paused": False, "fault": None}
    cluster = {**given, "executor": executor, "executor_parameters": parameters}
    assert note_of(cluster) == f"sia with whole-node, a round every 60 s, {says}"  # type: ignore[arg-type]
    cluster["fault"] = "sinfo took more than 15 s."
    assert note_of(cluster).endswith("its engine does not answer: sinfo took more than 15 s.")  # type: ignore[arg-type]


def test_a_gpu_that_two_jobs_share_names_both() -> None:
    shared = [dict(cell) for cell in samples.cells()]
    shared[0]["shared_with"] = [{"job_id": "job_c", "job_name": "train c", "tenant": "default"}]
    first, second = node_drawings(shared)[0]["stretches"][:2]
    assert (first["name"], first["count"], first["job"]) == ("train a and train c", 1, "job_a")
    assert (second["name"], second["count"]) == ("train a", 1)
    assert map_changes(shared, known_after(samples.cells()), scheme="light") is not None
