"""Lists of nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.errors import ClusterError
from maat.slurm.hosts import MOST_HOSTS, host_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu01", ["gpu01"]),
        ("gpu[01-03,10]", ["gpu01", "gpu02", "gpu03", "gpu10"]),
        ("gpu[1-2],cpu7,v[08-09]", ["gpu1", "gpu2", "cpu7", "v08", "v09"]),
        ("r[0-1]n[1-2]-ib", ["r0n1-ib", "r0n2-ib", "r1n1-ib", "r1n2-ib"]),
        ("n[8-10]", ["n8", "n9", "n10"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        (" a,b ", ["a", "b"]),
        ("", []),
    ],
)
def test_a_list_names_its_nodes_in_order(text: str, names: list[str]) -> None:
    assert host_names(text) == names


@pytest.mark.parametrize(
    "text",
    [
        *(
            "n[1-",
            "n]1[",
            "n[]",
            "n[a-c]",
            "n[3-1]",
            "a,,b",
            "a b",
            "n[1-2]]",
            "n[[1]]",
            ",a",
            "n[1,]",
        ),
        "n[0-999999999999999999]",
        "n[0-999]x[0-999]",
    ],
)
def test_what_is_no_list_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ClusterError) as refused:
        host_names(text, field="NodeName", row=7)
    assert (refused.value.field, refused.value.row) == ("NodeName", 7)
    assert refused.value.remedy


@given(st.integers(0, 300), st.integers(0, 40), st.integers(1, 5))
def test_a_range_has_as_many_names_as_numbers(first: int, more: int, width: int) -> None:
    names = host_names(f"n[{first:0{width}d}-{first + more:0{width}d}]x")
    assert names == [f"n{number:0{width}d}x" for number in range(first, first + more + 1)]


@given(st.text("n1-[],x", max_size=30))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        names = host_names(text)
    except ClusterError:
        return
    assert len(names) <= MOST_HOSTS
