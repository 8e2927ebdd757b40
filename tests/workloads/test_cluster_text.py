"""The nodes of a cluster from what scontrol and sinfo write, and from YAML."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.models.gpu_types import known_gpu_type
from maat.scheduling.errors import ClusterError, InputError
from maat.workloads.cluster_text import read_cluster

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


def test_a_slice_of_a_gpu_is_no_known_type() -> None:
    assert known_gpu_type("a100_1g.5gb") is None
    assert known_gpu_type("NVIDIA A100-SXM4-80GB") == "a100"
    assert known_gpu_type("geforce_rtx_2080_ti") == "rtx"


PIECES = st.sampled_from(
    [
        *("NodeName=", "a", " Gres=gpu:", "t4", ":4", "\n", "NODELIST GRES\n", "n[1-", "9]"),
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
