"""Tests of the figures and tables of use: the largest rows, the others together, and the total."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.figures.gpu_hours import MOST_ROWS, REST, hours_by_row_figure
from frontend.pages.usage.parts import rows_table, tiles

DAYS = ["2026-03-02", "2026-03-03"]


def figures(allocated: float) -> Any:
    part = {"profile": 0.0, "restart": 0.1, "used": 0.9, "lost": 0.1, "useful": 0.5}
    hours = {f"{name}_gpu_hours": share * allocated for name, share in part.items()}
    named = {"allocated_gpu_hours": allocated, "unmeasured_gpu_hours": 0.0, "cost": None}
    return {**hours, **named, "unpriced_gpu_hours": allocated}


def use(many: int, *, others: float = 0.0, by: str = "tenant", told: int = 12) -> Any:
    """Rows of 10, 20 ... GPU-hours a day, the largest first; of `told` rows the days are told."""
    sizes = [10.0 * (many - n) for n in range(many)]
    rows = [
        {
            "name": f"tenant-{n}",
            "figures": figures(size * 2),
            "waits": None,
            "allocated_gpu_hours_by_day": [size, size] if n < told else None,
        }
        for n, size in enumerate(sizes)
    ]
    rest = {
        "name": "other tenants",
        "figures": figures(others * 2),
        "waits": None,
        "allocated_gpu_hours_by_day": [others, others],
    }
    total = sum(sizes) + others
    day = {"is_partial": False, "figures": figures(total), "capacity_gpu_hours": 2 * total}
    waits = {"jobs": 0, "mean": None, "median": None, "p90": None, "longest": None}
    return {
        "by": by,
        "rows": rows,
        "others": rest if others else None,
        "days": [{"day": name, **day} for name in DAYS],
        "total": figures(total * 2),
        "waits": {name if name == "jobs" else f"{name}_seconds": v for name, v in waits.items()},
        "gpu_types": [{"capacity_gpu_hours": 4 * total, "idle_gpu_hours": 2 * total}],
        "currency": None,
    }


@pytest.mark.parametrize(("many", "others"), [(9, 0.0), (30, 0.0), (30, 7.0)])
def test_the_bars_of_a_day_add_up_to_all_that_was_allocated(many: int, others: float) -> None:
    found = use(many, others=others)
    drawn = hours_by_row_figure(found, scheme="light").data
    names = [bar.name for bar in drawn]
    assert names[:MOST_ROWS] == [f"tenant-{n}" for n in range(MOST_ROWS)]
    assert names[MOST_ROWS:] == [REST, *(["other tenants"] if others else [])]
    assert sum(bar.y[0] for bar in drawn) == pytest.approx(
        found["days"][0]["figures"]["allocated_gpu_hours"]
    )
    looks = {(bar.marker.color, bar.marker.pattern.shape) for bar in drawn}
    assert len(looks) == len(drawn), "two rows look alike"


def test_the_colour_of_a_tenant_does_not_follow_how_much_it_used() -> None:
    found = use(3)
    turned = {**found, "rows": found["rows"][::-1]}

    one, other = (
        {bar.name: bar.marker.color for bar in hours_by_row_figure(each, scheme="light").data}
        for each in (found, turned)
    )

    assert one == other
    assert len(set(one.values())) == 3


def test_few_rows_are_all_drawn_and_labels_have_no_sum() -> None:
    assert len(hours_by_row_figure(use(MOST_ROWS), scheme="dark").data) == MOST_ROWS
    labels = hours_by_row_figure(use(30, by="label"), scheme="dark").data
    assert len(labels) == MOST_ROWS
    assert REST not in [bar.name for bar in labels]


def test_the_total_is_the_foot_of_the_table_and_its_name_a_heading() -> None:
    _, table = rows_table(use(3)).children
    foot = table.children[-1]
    assert type(foot).__name__ == "Tfoot"
    assert type(foot.children.children[0]).__name__ == "Th"
    assert foot.children.children[0].children == "Total"


def test_the_useful_share_is_that_of_what_was_allocated_as_in_reports() -> None:
    assert "50 % of allocated" in str(tiles(use(3)))
