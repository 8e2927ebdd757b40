"""What the form of a new cluster says of the nodes that were pasted."""

from __future__ import annotations

from frontend.pages.admin.pasted_nodes import nodes_preview
from maat.api.imports import ClusterImportOut


def notes_of(**fields: object) -> list[str]:
    read: ClusterImportOut = {
        "format": "sinfo",
        "nodes": [],
        "groups": [{"gpu_type": "a100", "gpus_per_node": 8, "nodes": 2}],
        "gpu_count": 16,
        "left_out": [],
        "renamed": {},
        "out_of_service": {},
        "asleep": [],
        "unknown_types": [],
    }
    read.update(fields)  # type: ignore[typeddict-item]
    children = nodes_preview(read).children
    return [str(each.children) for each in children if getattr(each, "className", "") == "hint"]


def test_what_hundreds_of_nodes_lack_is_said_once() -> None:
    left = [{"row": 3, "name": f"c{number}", "why": "has no GPUs"} for number in range(300)]
    other = {"row": 9, "name": "x", "why": "has slices of GPUs (7 1g.5gb) and no whole GPUs"}
    assert notes_of(left_out=[*left, other]) == [
        "Left out: 300 nodes, of which each has no GPUs: c0, c1, c2, c3, c4, c5 and 294 more.",
        "Left out: x has slices of GPUs (7 1g.5gb) and no whole GPUs.",
    ]


def test_nodes_that_sleep_and_types_that_are_not_known_are_named() -> None:
    asleep, unknown = notes_of(asleep=["n1", "n2"], unknown_types=["mi250", "titan"])
    assert asleep == "Asleep there to save power, and in service here: n1, n2."
    assert "mi250, titan" in unknown
    assert "mi250=v100" in unknown


def test_nodes_without_anything_to_say_have_no_notes() -> None:
    assert notes_of() == []
