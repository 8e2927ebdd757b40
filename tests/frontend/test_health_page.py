"""The tab of health: every part that Maat needs has a line, with its state."""

from __future__ import annotations

from typing import Any

from frontend.pages.admin.health import PARTS, health_table

HEALTH: Any = {
    "version": "1.2.3",
    "database": "ok",
    "disk": "ok",
    "worker": {"state": "ok", "last_round_age_seconds": 4.0},
    "time": "2026-11-25T06:47:51Z",
}


def lines(table: Any) -> dict[str, list[str]]:
    rows = table.children[1].children.children.children
    return {row.children[0].children: [cell.children for cell in row.children[1:]] for row in rows}


def test_every_part_has_a_line_that_says_whether_it_is_there() -> None:
    shown = lines(health_table({"checked": list(PARTS)}, {}, HEALTH))  # type: ignore[typeddict-item]

    assert shown["Database"] == ["✓", "answers"]
    assert shown["Rounds"] == ["✓", "the last one 4 s ago"]
    assert shown["Version"] == ["", "1.2.3"]
    assert shown["Last answer"] == ["", "25 Nov 06:47:51 UTC"]
    assert len(shown) == len(PARTS) + 2


def test_what_is_missing_says_its_remedy_and_what_was_not_tried_says_so() -> None:
    told = "No worker answers. Start one."
    shown = lines(health_table(None, {"worker": told}, HEALTH))

    assert shown["Worker"] == ["⚠", told]
    assert shown["Queue"][0] == "–"
