"""The nodes of a cluster from what scontrol and sinfo write, and from YAML."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.errors import ClusterError, InputError
from maat.workloads.cluster_text import cluster_text, read_cluster

SCONTROL = """\
NodeName=gpu01 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUTot=128
   Gres=gpu:a100:8(S:0-1)
   State=IDLE ThreadsPerCore=1

NodeName=gpu02 Arch=x86_64
   Gres=gpu:nvidia_v100-sxm2:4,shard:8
   State=IDLE+DRAIN
NodeName=cpu01 Gres=(null) State=IDLE
NodeName=mixed Gres=gpu:a100:2,gpu:t4:2 State=IDLE
"""


def groups(text: str, **names: str) -> dict[tuple[str, int], int]:
    return dict(read_cluster(text, gpu_types=names).groups)


def test_nodes_of_scontrol_have_the_types_that_maat_knows_them_by() -> None:
    found = read_cluster(SCONTROL)
    assert found.format == "scontrol"
    assert [(n.name, n.gpu_type, n.gpu_count, n.out_of_service) for n in found.nodes] == [
        ("gpu01", "a100", 8, None),
        ("gpu02", "v100", 4, "IDLE+DRAIN"),
    ]
    assert [(each.row, each.name) for each in found.left_out] == [(9, "cpu01"), (10, "mixed")]
    assert found.renamed == {"nvidia_v100-sxm2": "v100"}


@pytest.mark.parametrize(
    "text",
    [
        "NODELIST GRES STATE\nn[01-03] gpu:t4:4 idle\nn01 gpu:t4:4 idle\nc1 (null) idle\n",
        json.dumps(
            {
                "nodes": [
                    {"name": f"n{i}", "gres": "gpu:tesla_t4:4", "state": ["IDLE"]} for i in "abc"
                ]
            }
        ),
        "nodes:\n  - {gpu_type: T4, gpu_count: 4, count: 3}\n",
        "shape: t4=3x4\n",
    ],
)
def test_sinfo_its_json_and_yaml_name_the_same_nodes(text: str) -> None:
    assert groups(text) == {("t4", 4): 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NodeName=a Gres=gpu:titan:2 State=IDLE", "row 1: gpu_type: is no known GPU type"),
        ("NodeName=a Gres=gpu:4 State=IDLE", "of node a has no type"),
        ("NodeName=a Gres=(null) State=IDLE", "names no node with GPUs: a has no GPUs"),
        ("NODELIST GRES\nn1 gpu:t4:4 idle\n", "row 2: text: has 3 cells where the header has 2"),
        ("NODELIST STATE REASON\nn1 idle none\n", "row 1: text: has no column GRES"),
        ("NODELIST GRES\nn[1- gpu:t4:4\n", "row 2: NODELIST: is no list of nodes"),
        ("NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia0", "is a line of gres.conf"),
        ('{"errors": [{"description": "no controller"}]}', "Slurm says: no controller"),
        ('{"sinfo": [{"gres": 1}]}', "is no answer of Slurm with nodes"),
        ("nodes:\n- {gpu_type: t4, gpu_count: 0}", "nodes.gpu_count: is no whole number"),
        ("nodes:\n- {gpu_type: t4, gpus: 2}", "nodes.gpus: is no field of a node"),
        ("- [", "is neither scontrol's"),
        ("", "neither nodes nor a shape"),
        ('{"nodes": 3}', "no answer of sinfo --json"),
    ],
)
def test_what_names_no_nodes_is_refused_with_its_line_and_a_remedy(text: str, said: str) -> None:
    with pytest.raises(ClusterError) as refused:
        read_cluster(text)
    assert said in str(refused.value)
    assert refused.value.remedy


def test_an_unknown_type_can_be_named() -> None:
    assert groups("NodeName=a Gres=gpu:titan:2 State=IDLE", titan="rtx") == {("rtx", 2): 1}


CONF = """\
# SlurmctldHost=head, NodeName=old[1-9] Gres=gpu:k80:8
ClusterName=site  # NodeName=commented Gres=gpu:t4:1
NodeName=DEFAULT CPUs=64 \\
    RealMemory=512000 State=UNKNOWN
nodename = gpu[01-03],gpu10 Gres=gpu:a100:8  # bought in 2023
NodeName=r[0-1]n[1-2]-ib Gres=gpu:v100:2,gpu:v100:2 \\
    Feature=ib State=DRAIN
NodeName=cloud[1-4] Gres="gpu:t4:1" State=CLOUD
NodeName=later[1-9] Gres=gpu:h100:8 State=FUTURE
NodeName=head State=IDLE
DownNodes=gpu[02-03] State=DOWN Reason="no power"
PartitionName=gpu Nodes=ALL Default=YES State=UP
"""


def test_slurm_conf_is_read_with_its_ranges_defaults_and_comments() -> None:
    found = read_cluster(CONF)
    assert found.format == "slurm.conf"
    assert found.groups == {("a100", 8): 4, ("v100", 4): 4, ("t4", 1): 4}
    assert [node.name for node in found.nodes][:6] == [
        *("gpu01", "gpu02", "gpu03", "gpu10", "r0n1-ib", "r0n2-ib"),
    ]
    out = {node.name: node.out_of_service for node in found.nodes if node.out_of_service}
    assert out == {"gpu02": "DOWN", "gpu03": "DOWN"} | {
        f"r{rack}n{number}-ib": "DRAIN" for rack in (0, 1) for number in (1, 2)
    }
    left = {each.name: each.why for each in found.left_out}
    assert len(left) == 10
    assert left["head"] == "has no GPUs"
    assert "not there yet" in left["later1"]


def test_what_stands_behind_the_nodes_of_slurm_conf_changes_none_of_them() -> None:
    text = "NodeName=n1 Gres=gpu:t4:2\nPartitionName=p Nodes=ALL State=DOWN Gres=gpu:k80:1\n"
    (node,) = read_cluster(text).nodes
    assert (node.gpu_type, node.gpu_count, node.out_of_service) == ("t4", 2, None)


def test_words_in_a_reason_are_no_fields() -> None:
    text = (
        "NodeName=n1 CPUAlloc=0 Gres=gpu:t4:2 OS=Linux 6.1.0 #1 SMP State=DOWN "
        "Reason=was State=IDLE with Gres=gpu:t4:4 [root@2026-01-01]\n"
    )
    (node,) = read_cluster(text).nodes
    assert (node.gpu_count, node.out_of_service) == (2, "DOWN")


@pytest.mark.parametrize(
    "text",
    [
        "NODELIST GRES STATE REASON\nn1 gpu:t4:2 drained bad disk, swap it\nn2 gpu:t4:2 idle none",
        "NODELIST REASON GRES STATE\nn1 bad disk, swap it gpu:t4:2 drain*\nn2 none gpu:t4:2 idle",
        "REASON|NODELIST|GRES|STATE\nbad disk, swap it|n1|gpu:t4:2|drng\nnone|n2|gpu:t4:2|idle~",
        "Mon Jan 05 10:00:00 2026\nHOSTNAMES STATE GRES COMMENT\nn1 down gpu:t4:2 of 2019\n"
        "n2 mix- gpu:t4:2 none\n",
    ],
)
def test_a_reason_may_hold_spaces_wherever_its_column_stands(text: str) -> None:
    found = read_cluster(text)
    assert [(node.name, bool(node.out_of_service)) for node in found.nodes] == [
        ("n1", True),
        ("n2", False),
    ]
    assert found.groups == {("t4", 2): 2}


def test_all_types_that_are_not_known_are_named_in_one_answer() -> None:
    lines = [f"n{place} gpu:{name}:4 idle" for place, name in enumerate(("mi250", "titan"))]
    text = "\n".join(["NODELIST GRES STATE", *lines, "n9 gpu:8 idle"])
    with pytest.raises(ClusterError) as refused:
        read_cluster(text)
    assert "3 that are not known: mi250, titan, gpu" in str(refused.value)
    found = read_cluster(f"{text}\nn10 gpu:a100:8 idle")
    assert (found.unknown_types, found.groups) == (("mi250", "titan", "gpu"), {("a100", 8): 1})
    assert [each.name for each in found.left_out] == ["n0", "n1", "n9"]
    named = read_cluster(text, gpu_types={"MI250": "a100", "titan": "rtx", "gpu": "t4"})
    assert named.groups == {("a100", 4): 1, ("rtx", 4): 1, ("t4", 8): 1}


def test_slices_are_left_out_and_named_and_whole_gpus_beside_them_are_taken() -> None:
    found = read_cluster(
        "NODELIST GRES\nn1 gpu:a100:4,gpu:a100_1g.5gb:14\nn2 gpu:1g.5gb:7\nn3 vgpu:t4:8\n"
    )
    assert found.groups == {("a100", 4): 1}
    assert [(each.name, each.why) for each in found.left_out] == [
        ("n1", "has slices of GPUs (14 a100_1g.5gb) beside whole GPUs, which are taken"),
        ("n2", "has slices of GPUs (7 1g.5gb) and no whole GPUs"),
        ("n3", "has no GPUs"),
    ]


def test_two_spellings_of_a_type_are_one_type() -> None:
    assert groups("NODELIST GRES\nn1 gpu:a100:4,gpu:nvidia_a100-sxm4-80gb:4\n") == {("a100", 8): 1}


def test_a_cell_that_was_cut_off_is_no_count() -> None:
    found = read_cluster(
        "NODELIST GRES\nn1 gpu:nvidia_a100-sxm4\nn2 gpu:a100:8\n"
        "n3 gpu:a100:8(S:0-1),gp\nn4 gpu:a100:8,craynetwork\n"
    )
    assert found.groups == {("a100", 8): 2}
    assert "without a count: gpu:nvidia_a100-sxm4" in found.left_out[0].why
    assert [each.name for each in found.left_out] == ["n1", "n3"]


def test_equal_nodes_that_newer_sinfo_groups_are_all_found() -> None:
    group = {
        "node": {"state": ["IDLE"]},
        "nodes": {"total": 3, "nodes": ["n[1-2]", "n7"]},
        "gres": {"total": "gpu:t4:4(S:0)", "used": "gpu:t4:0"},
        "partition": {"name": "gpu"},
    }
    empty = group | {"nodes": {"total": 0, "nodes": []}}
    found = read_cluster(json.dumps({"sinfo": [group, empty], "errors": []}))
    assert [node.name for node in found.nodes] == ["n1", "n2", "n7"]


def test_slurms_yaml_and_ones_own_json_are_read_too() -> None:
    assert groups("nodes:\n- name: a\n  gres: gpu:t4:2\n  state: [IDLE]\n") == {("t4", 2): 1}
    assert groups('{"nodes": [{"gpu_type": "t4", "gpu_count": 2, "count": 3}]}') == {("t4", 2): 3}


PIECES = st.sampled_from(
    [
        *("NodeName=", "a", " Gres=gpu:", "t4", ":4", "\n", "NODELIST GRES\n", "n[1-", "9]"),
        *("NodeName=DEFAULT", "DownNodes=", " \\", "#", '{"sinfo"', "|", "REASON "),
        *("{", '"nodes"', ": ", "[", "- ", "shape: t4=", "&a ", "*a", "\0", "1x1"),
        "!!python/object:os.system ",
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=14).map("".join)))
def test_no_text_raises_anything_but_an_input_error(text: str) -> None:
    try:
        found = read_cluster(text)
    except InputError:
        return
    assert found.nodes


@pytest.mark.parametrize("broken", [None, "text", {"gres": "gpu:a100:8", "state": "idle"}, []])
def test_a_node_of_json_that_cannot_be_read_is_left_out_alone(broken: object) -> None:
    node = {"name": "n1", "gres": "gpu:a100:8", "state": ["IDLE"]}
    found = read_cluster(json.dumps({"nodes": [node, broken, {**node, "name": "n3"}]}))
    assert [each.name for each in found.nodes] == ["n1", "n3"]
    (left_out,) = found.left_out
    assert (left_out.row, left_out.name) == (2, "record 2")
    assert left_out.why in ("has no name", "has another form")


@pytest.mark.parametrize(
    ("text", "row", "words"),
    [
        ("NODELIST GRES STATE\nn1 gpu:a100:8 idle\nm[1-200000] gpu:a100:8 idle", 3, "too many"),
        ("NODELIST GRES STATE\nn1 gpu:a100:8 idle\nm1 gpu:a100:8", 3, "has 2 cells where"),
        ("NodeName=n1 Gres=gpu:a100:8\nNodeName=m[1- Gres=gpu:a100:8", 2, "is no list of nodes"),
        ("NodeName=n1 Gres=gpu:a100:8\nDownNodes=m[1- State=DOWN", 2, "is no list of nodes"),
        ("nodes:\n- {gpu_type: a100, gpu_count: 8}\n- {gpu_type: a100, gpu_count: x}", 2, "'x'"),
        ("nodes:\n- {gpu_type: a100, gpu_count: 8}\n- {gpu_type: 3, gpu_count: 8}", 2, "gpu_type"),
        ("nodes:\n- {gpu_type: a100, gpu_count: 8}\n- text", 2, "is no node with gpu_type"),
        ("NODELIST GRES\nn1 gpu:a100:8\nn\ufffd gpu:a100:8", 3, "not UTF-8"),
    ],
)
def test_a_record_that_cannot_be_read_is_left_out_alone(text: str, row: int, words: str) -> None:
    found = read_cluster(text)
    assert found.groups == {("a100", 8): 1}
    (left_out,) = found.left_out
    assert left_out.row == row
    assert words in left_out.why


def test_a_count_may_be_written_as_a_decimal_number() -> None:
    assert groups('{"nodes": [{"gpu_type": "t4", "gpu_count": 8.0, "count": 2.0}]}') == {
        ("t4", 8): 2
    }


@pytest.mark.parametrize("error", [{"description": "lost a node"}, "lost a node"])
def test_slurms_nodes_count_beside_its_errors_which_are_told(error: object) -> None:
    node = {"name": "n1", "gres": "gpu:a100:8", "state": ["IDLE"]}
    found = read_cluster(json.dumps({"nodes": [node], "errors": [error]}))
    assert found.groups == {("a100", 8): 1}
    assert [each.why for each in found.left_out] == ["may lack nodes: Slurm says lost a node"]
    with pytest.raises(ClusterError, match="Slurm says: lost a node"):
        read_cluster(json.dumps({"nodes": [], "errors": [error]}))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("n1 gpu:a100:4 idle\nn1 gpu:a100:8 idle", "gpu:a100:8 here and gpu:a100:4 in row 2"),
        ("n1 gpu:a100:4 idle\nn1 gpu:a100:4 down", "down here and idle in row 2"),
        ("n1 gpu:a100:4 idle\nn1 gpu:a100:4(S:0) mixed", None),
    ],
)
def test_rows_of_one_node_that_disagree_are_told(rows: str, why: str | None) -> None:
    found = read_cluster(f"NODELIST GRES STATE\n{rows}")
    assert found.groups == {("a100", 4): 1}
    said = [each.why for each in found.left_out]
    assert len(said) == (why is not None)
    assert all(why.upper() in each.upper() for each in said if why is not None)


def test_nodes_of_json_that_disagree_are_told() -> None:
    node = {"name": "n1", "gres": "gpu:a100:4", "state": ["IDLE"]}
    found = read_cluster(json.dumps({"nodes": [node, {**node, "gres": "gpu:a100:8"}]}))
    assert found.groups == {("a100", 4): 1}
    assert [(each.row, each.name) for each in found.left_out] == [(2, "n1")]


def test_a_name_that_is_not_utf8_costs_its_node_alone() -> None:
    text = cluster_text(b"NODELIST GRES REASON\nn\xe9 gpu:t4:2 none\nn2 gpu:t4:2 fan cass\xe9\n")
    found = read_cluster(text)
    assert [node.name for node in found.nodes] == ["n2"]
    assert [each.why for each in found.left_out] == ["has a name that is not UTF-8"]
    nodes = "NODELIST GRES STATE\nn1 gpu:t4:2 idle\n"
    assert read_cluster(cluster_text(nodes.encode("utf-16"))).groups == {("t4", 2): 1}
    for no_text in (b"\xff\xe9\xe8", b"\x89PNG\0"):
        with pytest.raises(ClusterError, match="no text in UTF-8"):
            cluster_text(no_text)
