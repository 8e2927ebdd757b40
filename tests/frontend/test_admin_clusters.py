"""The tab of clusters: what its forms send, what its tables and dialogs say."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.components.node_effect import node_effect
from frontend.pages.admin import clusters, new_cluster, node_dialog, nodes, policy
from frontend.pages.admin.cluster_rows import cluster_table, node_state_words
from frontend.pages.admin.policy_preview import preview_view
from maat.api.clusters import ClusterBody, ClusterChanges, MovedJobOut, NodeEffectOut, NodeOut
from maat.api.policies import DescribedOut
from maat.api.previews import (
    JobFateOut,
    PreviewedJobOut,
    PreviewResultOut,
    RoundPreviewBody,
    RoundPreviewOut,
    RoundSideOut,
)

EMPTY = {
    "name": "lab",
    "executor": "simulated",
    "shape": "t4=1x4",
    "policy": "fifo",
    "placer": None,
    "round_seconds": "",
    "jobs_per_gpu": "",
    "interference": "",
    "least_stay_seconds": "",
    "most_moves_per_hour": "",
    "shared_dir": "",
    "partition": "",
    "nodes_text": "",
}


def test_a_new_cluster_sends_what_was_filled_in_and_leaves_the_placer_to_the_service() -> None:
    body = ClusterBody.model_validate(new_cluster.body_of(EMPTY))
    assert (body.shape, body.placer, body.round_seconds) == ("t4=1x4", None, None)
    assert body.jobs_per_gpu == 1
    both = EMPTY | {"jobs_per_gpu": 2, "interference": "1.3"}
    shared = ClusterBody.model_validate(new_cluster.body_of(both))
    assert (shared.jobs_per_gpu, shared.interference) == (2, 1.3)
    named = new_cluster.body_of(EMPTY | {"interference": "lab pairs"})
    assert ClusterBody.model_validate(named).interference == "lab pairs"
    bounded = new_cluster.body_of(EMPTY | {"least_stay_seconds": 1800, "most_moves_per_hour": 4})
    stays = ClusterBody.model_validate(bounded)
    assert (stays.least_stay_seconds, stays.most_moves_per_hour) == (1800.0, 4)
    slurm = EMPTY | {"executor": "slurm", "shared_dir": "/tmp", "partition": "gpu"}
    sent = ClusterBody.model_validate(new_cluster.body_of(slurm))
    assert sent.shape is None
    assert sent.executor_parameters is not None
    assert sent.executor_parameters.partition == "gpu"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"shape": ""}, "shape"),
        ({"round_seconds": -1}, "round_seconds"),
        ({"jobs_per_gpu": 3}, "jobs_per_gpu"),
        ({"least_stay_seconds": -1}, "least_stay_seconds"),
        ({"most_moves_per_hour": 1.5}, "most_moves_per_hour"),
        ({"executor": "slurm"}, "shared_dir"),
    ],
    ids=str,
)
def test_a_new_cluster_says_beside_the_field_what_is_missing(
    given: dict[str, Any], field: str
) -> None:
    assert list(new_cluster.unfinished(EMPTY | given)) == [field]
    assert new_cluster.unfinished(EMPTY) == {}


def test_a_change_of_a_cluster_sends_only_what_differs() -> None:
    pressed = clusters.Pressed(
        at=1, cluster="clu_1", name="lab", round_seconds="60.0", speed="1.0",
        keep_rounds="100", jobs_per_gpu="1", interference="synthetic",
        least_stay_seconds="1800.0", most_moves_per_hour="",
        paused="", version="3",
    )  # fmt: skip
    values = {
        "name": "lab", "round_seconds": 30, "speed": 1, "keep_rounds": 100, "jobs_per_gpu": 2,
        "interference": "synthetic", "least_stay_seconds": "", "most_moves_per_hour": 4,
    }  # fmt: skip
    changes = clusters.changes_of(values, pressed)
    assert ClusterChanges.model_validate(changes).model_dump(exclude_unset=True) == {
        "round_seconds": 30,
        "jobs_per_gpu": 2,
        "least_stay_seconds": None,
        "most_moves_per_hour": 4,
    }
    unchanged = {"least_stay_seconds": 1800, "most_moves_per_hour": ""}
    assert clusters.changes_of(values | unchanged, pressed).keys() == {
        "round_seconds",
        "jobs_per_gpu",
    }
    for typed, sent in ((" 1.5 ", 1.5), ("pairs of ours", "pairs of ours"), ("nan", "nan")):
        changes = clusters.changes_of(values | unchanged | {"interference": typed}, pressed)
        assert changes["interference"] == sent
    faulty = {"name": "", "speed": "", "keep_rounds": 0, "jobs_per_gpu": 3, "interference": " "}
    wrong = clusters.unfinished(values | faulty, pressed)
    assert set(wrong) == {"name", "speed", "keep_rounds", "jobs_per_gpu", "interference"}
    undeclared: Any = pressed | {"interference": ""}
    assert clusters.unfinished(values | {"interference": ""}, undeclared) == {}
    assert "interference" not in clusters.changes_of(values | {"interference": ""}, undeclared)


def test_new_nodes_need_a_type_and_counts() -> None:
    values = {"gpu_type": "", "gpu_count": "", "count": 0, "name": ""}
    assert set(nodes.unfinished(values)) == {"gpu_type", "gpu_count", "count"}
    assert node_dialog.wrong_count(1.5) == "Give a whole number."
    assert node_dialog.wrong_count(8) == ""


def test_a_node_says_how_much_of_it_is_drained() -> None:
    def node(drained: list[int], fault: str | None = None) -> NodeOut:
        return NodeOut(
            id="node_1", name="t4-0", gpu_type="t4", gpu_count=2, memory_gib=None,
            drained_gpus=drained, fault=fault, position=0, version=1,
        )  # fmt: skip

    said = [node_state_words(node(drained)) for drained in ([], [1], [0, 1])]
    assert said == ["in service", "1 GPU drained", "drained"]
    assert "no answer" in node_state_words(node([], "no answer"))


def test_the_dialog_names_who_moves_who_stays_and_the_cost() -> None:
    def job(name: str, *, may_move: bool) -> MovedJobOut:
        return MovedJobOut(
            job_id="job_1", job_name=name, tenant="vision", state="running", gpu_type="t4",
            gpu_count=3, gpus_here=2, may_move=may_move, restart_seconds=90.0,
        )  # fmt: skip

    effect = NodeEffectOut(
        dry_run=True, cluster_id="clu_1", node="t4-0", gpus=[0, 1], held_up_by=1,
        jobs=[job("<b>net</b>", may_move=True), job("rigid", may_move=False)],
        restart_gpu_seconds=3600.0, sentence="Two jobs.",
    )  # fmt: skip
    said = str(node_effect(effect, table_id="t"))
    for words in (
        "<b>net</b>",
        "restart 1 min 30 s",
        "stays: may not be preempted",
        "about 1 h of one GPU",
    ):
        assert words in said
    nobody = effect | {"jobs": [], "sentence": "Nothing moves."}
    assert "Table" not in str(node_effect(nobody, table_id="t"))  # type: ignore[arg-type]


def test_without_a_cluster_the_list_says_what_to_do() -> None:
    assert "No cluster yet" in str(cluster_table([], may=True))


def test_a_preview_tries_the_whole_form_and_the_policys_own_pace_where_none_is_typed() -> None:
    described = [
        DescribedOut(
            name="fifo", title="FIFO", summary="", round_seconds=60.0, placer=None, parameters=[]
        )
    ]
    values = {"policy": "fifo", "placer": "pal"}
    given: Any = {
        "ids": [
            {"parameter": "admin-policy", "of": "policy:fifo", "name": "round_seconds"},
            {"parameter": "admin-policy", "of": "placer:pal", "name": "locality"},
            {"parameter": "admin-policy", "of": "policy:sia", "name": "p"},
        ],
        "values": ["", 1.5, -1],
    }
    body = policy.body_of(values, given, described)
    assert RoundPreviewBody.model_validate(body).model_dump(exclude_unset=True) == {
        "policy": "fifo",
        "policy_parameters": {},
        "placer": "pal",
        "placer_parameters": {"locality": 1.5},
        "round_seconds": 60.0,
    }


def side(policy_name: str, **counts: int) -> RoundSideOut:
    zeros = dict.fromkeys(
        ("jobs_with_gpus", "jobs_waiting", "starts", "resumes", "stops", "resizes", "moves"), 0
    )
    given: Any = {"restarts": 0, "gpus_in_use": 4, **zeros, **counts}
    return RoundSideOut(
        policy=policy_name, policy_parameters={}, placer="whole-node", placer_parameters={},
        round_seconds=60.0, jobs_per_gpu=1, interference=None, gpus_by_type={"t4": 4},
        seconds=0.1, notes=[f"{policy_name} lacks something."], **given,
    )  # fmt: skip


def preview_in(state: Any, result: PreviewResultOut | None = None) -> RoundPreviewOut:
    return RoundPreviewOut(
        id="prv_1", cluster_id="clu_1", operation_id="op_1", state=state, cluster_version=1,
        request={}, result=result, message="The rounds took too long.", error=None, created_at="",
    )  # fmt: skip


def test_a_preview_shows_both_rounds_and_what_becomes_of_each_job() -> None:
    keeps = JobFateOut(fate="keep", gpu_type="t4", gpu_count=4)
    moves = JobFateOut(fate="migrate", gpu_type="a100", gpu_count=1)
    job = PreviewedJobOut(
        job_id="job_1", job_name="net", tenant="vision", gpu_type="t4", gpu_count=4,
        as_it_stands=keeps, with_change=moves,
    )  # fmt: skip
    result = PreviewResultOut(
        round_number=8, at="", gpus_in_use=4, gpus_in_service=8, as_it_stands=side("fifo"),
        with_change=side("sia", moves=1, restarts=1), jobs_treated_differently=1, jobs=[job],
        jobs_left_out=2, jobs_not_considered=1,
    )  # fmt: skip
    said = str(preview_view(preview_in("succeeded", result)))
    for words in ("fifo", "sia", "stays on 4 × t4", "moves to 1 × a100", "2 more jobs"):
        assert words in said
    assert "4 of 8 GPUs are in use before it" in said
    assert "Restarts of running jobs" in said
    assert "1 of the jobs that wait is not considered yet" in said
    assert "sia lacks something." in said
    assert "fifo lacks something." not in said


def test_a_preview_without_a_result_says_why() -> None:
    assert "⚠ The rounds took too long." in str(preview_view(preview_in("failed")))
    assert "Waiting for a worker." in str(preview_view(preview_in("queued")))
