"""GPUs in lists of generic resources, as every version of Slurm writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.slurm.gres import Gres, count_of, gpus_by_type, indices, resources


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:8", {"": 8}),
        ("gpu:a100:8(S:0-1)", {"a100": 8}),
        ("gpu:6(S:0,2-3)", {"": 6}),
        ("gpu:t4:2(S:0),gpu:t4:2(S:1)", {"t4": 4}),
        ("gpu:a100:4,gpu:t4:2", {"a100": 4, "t4": 2}),
        ("tmpsize:7T,gpu:l40s:4(S:0-1)", {"l40s": 4}),
        ("craynetwork:4,gpu:no_consume:2,bandwidth:lustre:no_consume:4G", {"": 2}),
        ("gpu:nvidia_a100_3g.20gb:2", {"nvidia_a100_3g.20gb": 2}),
        ("gpu:a100:0", {}),
        ("gres:gpu:a100:2", {"a100": 2}),
        ("gres/gpu:a100:2", {"a100": 2}),
        ("7696487:4", {"": 4}),
        ("cpu=10,gres/gpu=4,gres/gpu:a100=4,gres/gpumem=1G", {"": 4, "a100": 4}),
        ("gres/vgpu=3,gres/shard=2,gres/gpuutil=55,license/gpu=3", {}),
        ("vgpu:3,mygpu:t4:2,gpus:1,mps:400,shard:a100:4", {}),
        ("(null)", {}),
        ("N/A", {}),
        ("", {}),
    ],
)
def test_only_what_is_named_gpu_is_gpus(text: str, gpus: dict[str, int]) -> None:
    assert gpus_by_type(resources(text)) == gpus


def test_a_request_without_a_count_asks_for_one_gpu_and_a_node_without_one_has_none() -> None:
    asked = resources("gpu:a100")
    assert gpus_by_type(asked, without_count=1) == {"a100": 1}
    assert gpus_by_type(asked) == {}


def test_shards_are_counted_whatever_type_they_have() -> None:
    assert count_of(resources("gpu:a100:2,shard:a100:4"), "shard") == 4
    assert count_of(resources("gpu:a100:2,shard:2,shard:1K"), "shard") == 1026


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:a100:2(IDX:0-1)", (0, 1)),
        ("gpu:3(IDX:0,2-3)", (0, 2, 3)),
        ("gpu(IDX:0,2-3)", (0, 2, 3)),
        ("gpu:a100:0(IDX:N/A)", ()),
        ("gpu:a100:2(IDX:)", ()),
        ("gpu:a100:2", ()),
        ("gpu:a100:2(CNT:2)", ()),
        ("shard:2(IDX:0)", (0,)),
        ("shard:2(IDX:1(2/4))", (1,)),
        ("shard:3(0/4,3/4)", (1,)),
    ],
)
def test_indices_are_those_that_stand_in_parentheses(text: str, found: tuple[int, ...]) -> None:
    (only,) = resources(text)
    assert indices(only) == found


WORD = st.text("abcdefg0123456789_.-", min_size=1, max_size=8).filter(
    lambda word: not word.isdecimal() and word[:-1] + "k" != word and word != "no_consume"
)


@given(st.lists(st.tuples(WORD, st.integers(0, 64)), max_size=6), st.booleans())
def test_what_is_written_is_read_again(items: list[tuple[str, int]], is_tres: bool) -> None:
    form = "gres/gpu:{}={}" if is_tres else "gpu:{}:{}(S:0,1-2)"
    text = ",".join(form.format(*item) for item in items)
    assert [(each.type, each.count) for each in resources(text)] == items


@given(st.text("gpu:=(),/0123456789aIDX-", max_size=40))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for each in resources(text):
        assert isinstance(each, Gres)
        assert all(index >= 0 for index in indices(each))
