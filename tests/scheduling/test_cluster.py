"""Clusters: how they are written, what is refused, and how GPUs are counted."""

from __future__ import annotations

import pytest

from maat.scheduling.cluster import Cluster, GpuType, Node
from maat.scheduling.errors import ClusterError
from maat.vocabulary import MAX_GPUS


def test_the_short_form_reads_and_writes_the_same() -> None:
    text = "t4=6x4,rtx=3x8,a100=2x8"
    cluster = Cluster.parse(text)
    assert cluster.describe() == text
    assert cluster.gpu_count == 64
    assert cluster.type_names == ("t4", "rtx", "a100")
    assert cluster.capacity.tolist() == [24, 24, 16]


def test_groups_of_one_type_may_differ_in_size() -> None:
    cluster = Cluster.parse("t4=1x4, t4=2x2")
    assert [node.id for node in cluster.nodes] == ["t4-0", "t4-1", "t4-2"]
    assert cluster.gpu_node.tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert cluster.gpus_per_node.tolist() == [4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"cluster: does not read as type=NODESxGPUS \(got ''\). Write for example t4=6x4"),
        ("t4=6", r"cluster: does not read as type=NODESxGPUS \(got 't4=6'\)"),
        ("t4=1x4,,", "does not read as type=NODESxGPUS"),
        ("T4=1x4", "has capitals in its GPU type .* Write t4=1x4"),
        ("t4=-1x4", "does not read as type=NODESxGPUS"),
        (
            "t4=0x4",
            r"cluster: has zero GPUs \(got 't4=0x4'\). "
            r"Give every type at least one node with one GPU.",
        ),
        ("t4=2x0", "has zero GPUs"),
        (
            "t4=99999999x4",
            r"cluster: has more GPUs than Maat accepts \(got 't4=99999999x4'\). "
            rf"Stay at or below {MAX_GPUS} GPUs.",
        ),
        ("t4=1x65", r"nodes\[t4-0\].gpu_count: is not between 1 and 64 GPUs \(got 65\)"),
        (
            "t4=10000x64,rtx=10000x64",
            r"cluster: has more GPUs than Maat accepts \(got 'rtx=10000x64'\). "
            rf"Stay at or below {MAX_GPUS} GPUs.",
        ),
    ],
)
def test_what_is_no_cluster_is_refused_by_field_value_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        Cluster.parse(text)


def test_a_cluster_without_nodes_is_refused() -> None:
    with pytest.raises(ClusterError, match="nodes: has no GPUs"):
        Cluster.of([])


def test_two_nodes_of_one_name_are_refused() -> None:
    with pytest.raises(ClusterError, match="two nodes of the same name"):
        Cluster.of([Node("a", "t4", 1), Node("a", "t4", 1)])


def test_a_node_of_an_unlisted_type_and_a_type_listed_twice_are_refused() -> None:
    with pytest.raises(
        ClusterError, match=r"nodes\[a\].gpu_type: is not among the cluster's types \(got 'rtx'\)"
    ):
        Cluster((Node("a", "rtx", 1),), (GpuType("t4"),))
    with pytest.raises(ClusterError, match="gpu_types: lists a GPU type twice"):
        Cluster((Node("a", "t4", 1),), (GpuType("t4"), GpuType("t4")))


def test_draining_a_gpu_that_a_node_does_not_have_is_refused() -> None:
    with pytest.raises(
        ClusterError,
        match=r"nodes\[a\].drained: names a GPU that the node does not have \(got \[4\]\). "
        r"Use indices 0 to 3.",
    ):
        Node("a", "t4", 4, drained=frozenset({4}))


def test_a_gpu_type_has_a_plain_name() -> None:
    with pytest.raises(ClusterError, match="is not a usable name"):
        GpuType("Tesla T4")


def test_drained_gpus_are_not_capacity() -> None:
    cluster = Cluster.of(
        [Node("a", "t4", 4, drained=frozenset({0, 2})), Node("b", "t4", 2)], jobs_per_gpu=2
    )
    assert cluster.gpu_available.tolist() == [False, True, False, True, True, True]
    assert cluster.usable_gpus.tolist() == [4]
    assert cluster.capacity.tolist() == [8], "places: GPUs x jobs per GPU"
    assert cluster.gpus_per_node.tolist() == [2]


def test_nodes_of_a_group_stand_in_racks_of_so_many_and_other_groups_in_others() -> None:
    cluster = Cluster.parse("t4=3x2/2,a100=1x2/2,rtx=2x1", racks=True)
    assert [node.rack for node in cluster.nodes] == [
        "t4-rack-0",
        "t4-rack-0",
        "t4-rack-1",
        "a100-rack-0",
        None,
        None,
    ]
    assert cluster.gpu_rack.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert cluster.rack_count == 4
    assert cluster.describe() == "t4=3x2/2,a100=1x2/1,rtx=2x1"


@pytest.mark.parametrize(
    ("text", "racks", "says"),
    [
        ("t4=4x2/2", False, "has racks, which only simulations know .* Write t4=4x2."),
        ("t4=4x2/0", True, "has racks of no node"),
        ("t4=4x2/", True, "does not read as type=NODESxGPUS"),
    ],
)
def test_racks_are_refused_where_nothing_knows_them(text: str, racks: bool, says: str) -> None:
    with pytest.raises(ClusterError, match=says):
        Cluster.parse(text, racks=racks)
