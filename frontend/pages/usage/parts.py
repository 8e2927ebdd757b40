"""The tiles and the tables of the page of use and cost."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import empty_state, tile
from frontend.components.names import cut_name
from frontend.components.next_step import goes_to, leads
from frontend.components.states import gpu_chip
from frontend.formatting import ABSENT, count, duration, percent
from maat.api.usage import TypeUse, UsageOut, UsageRow, WaitsOut


def hours(value: float) -> str:
    """GPU-hours with one decimal, whole from a thousand on."""
    return count(round(value)) if value >= 1000 else f"{value:.1f}"


def money(amount: str | None, currency: str | None) -> str:
    """An amount with separators; the decimals are the service's own."""
    if amount is None:
        return ABSENT
    whole, _, cents = amount.partition(".")
    return f"{count(int(whole))}.{cents} {currency}"


def tiles(found: UsageOut) -> list[Component]:
    total, waits = found["total"], found["waits"]
    capacity = sum(one["capacity_gpu_hours"] for one in found["gpu_types"])
    allocated, used = total["allocated_gpu_hours"], total["used_gpu_hours"]
    idle = sum(one["idle_gpu_hours"] for one in found["gpu_types"])
    return [
        tile("Allocated (GPU-h)", hours(allocated), _of(allocated, capacity, "utilisation")),
        tile("Used (GPU-h)", hours(used), f"{hours(total['restart_gpu_hours'])} in restarts"),
        tile(
            "Useful (GPU-h)",
            hours(total["useful_gpu_hours"]),
            _of(total["useful_gpu_hours"], allocated, "of allocated"),
        ),
        tile("Idle (GPU-h)", hours(idle), f"{hours(total['lost_gpu_hours'])} lost to failures"),
        tile("Cost", money(total["cost"], found["currency"]), _price_note(found)),
        tile(
            "Median wait",
            ABSENT if waits["median_seconds"] is None else duration(waits["median_seconds"]),
            _wait_note(waits),
        ),
    ]


def verdict(found: UsageOut) -> str:
    """Sum up a period: how much was allocated, to what effect, and how long jobs waited."""
    total, wait = found["total"], found["waits"]["median_seconds"]
    allocated = total["allocated_gpu_hours"]
    capacity = sum(one["capacity_gpu_hours"] for one in found["gpu_types"])
    if allocated <= 0 or capacity <= 0:
        return "No GPU was held in this period."
    use = f"{_of(allocated, capacity, 'of all GPU-hours were allocated')}"
    good = _of(total["useful_gpu_hours"], allocated, "of these useful")
    waits = "" if wait is None else f"; half of the jobs waited less than {duration(wait)}"
    return f"{use}, {good}{waits}."


def _of(part: float, whole: float, words: str) -> str:
    return f"{percent(min(part / whole, 1.0))} {words}" if whole > 0 else "none"


def _price_note(found: UsageOut) -> str:
    missing = found["total"]["unpriced_gpu_hours"]
    if found["currency"] is None:
        return "no price yet: see Prices"
    return f"{hours(missing)} h without price" if missing > 0 else "of allocated hours"


def _wait_note(waits: WaitsOut) -> str:
    if waits["p90_seconds"] is None:
        return "no job started"
    return f"90th percentile {duration(waits['p90_seconds'])}"


def rows_table(found: UsageOut) -> Component:
    rows = [*found["rows"], *([] if found["others"] is None else [found["others"]])]
    if not rows or found["total"]["allocated_gpu_hours"] == 0:
        return empty_state(
            "No GPU was held in this period",
            "Choose a period in which jobs ran, or submit one.",
            action=leads("Submit job", "/submit"),
        )
    heads = (
        "",
        "Allocated",
        "Used",
        "Useful",
        "Restarts",
        "Profiles",
        "Lost",
        "Cost",
        "Jobs started",
        "Median wait",
        "90th percentile",
    )
    total = UsageRow(
        name="Total",
        figures=found["total"],
        waits=found["waits"],
        allocated_gpu_hours_by_day=None,
    )
    note = "From allocated to lost in GPU-hours."
    if found["by"] == "label":
        note += " A job counts for each of its labels, so these rows do not add up."
    return html.Div(
        [
            html.Div(note, className="hint"),
            _table(
                heads,
                [_row(row, found["currency"]) for row in rows],
                total=_row(total, found["currency"], is_total=True),
            ),
        ]
    )


def types_table(types: Sequence[TypeUse], currency: str | None) -> Component:
    if not types:
        return empty_state(
            "No round was made in this period",
            "Choose a later period.",
            action=goes_to("Choose a period", "usage-period"),
        )
    heads = ("", "GPU-hours", "Utilisation", "Idle", "Fragmented", "Reserved, idle", "Price per h")
    table = _table(heads, [_type_row(one, currency) for one in types])
    note = "What is idle, fragmented and reserved: GPU-hours."
    return html.Div([html.Div(note, className="hint"), table])


def _row(row: UsageRow, currency: str | None, *, is_total: bool = False) -> html.Tr:
    figures, waits = row["figures"], row["waits"]
    cells = [
        hours(figures["allocated_gpu_hours"]),
        hours(figures["used_gpu_hours"]),
        hours(figures["useful_gpu_hours"]),
        hours(figures["restart_gpu_hours"]),
        hours(figures["profile_gpu_hours"]),
        hours(figures["lost_gpu_hours"]),
        money(figures["cost"], currency),
        ABSENT if waits is None else count(waits["jobs"]),
        ABSENT if waits is None else duration(waits["median_seconds"]),
        ABSENT if waits is None else duration(waits["p90_seconds"]),
    ]
    name = html.Th(row["name"], scope="row") if is_total else html.Td(cut_name(row["name"]))
    return html.Tr([name, *(html.Td(cell, className="number") for cell in cells)])


def _type_row(one: TypeUse, currency: str | None) -> html.Tr:
    price = one["price_per_gpu_hour"]
    cells: list[Component | str] = [
        hours(one["capacity_gpu_hours"]),
        percent(one["utilisation"]),
        _with_cost(one["idle_gpu_hours"], one["idle_cost"], currency),
        _with_cost(one["fragmented_gpu_hours"], one["fragmented_cost"], currency),
        _with_cost(one["reserved_idle_gpu_hours"], one["reserved_idle_cost"], currency),
        ABSENT if price is None else f"{price} {currency}",
    ]
    chip = gpu_chip(one["gpu_type"], one["gpu_type"])
    return html.Tr([html.Td(chip), *(html.Td(cell, className="number") for cell in cells)])


def _with_cost(gpu_hours: float, cost: str | None, currency: str | None) -> Component:
    lines: list[Component | str] = [hours(gpu_hours)]
    if cost is not None:
        lines.append(html.Div(money(cost, currency), className="caption"))
    return html.Div(lines)


def _table(
    heads: Sequence[str], rows: Sequence[html.Tr], *, total: html.Tr | None = None
) -> html.Table:
    """A table; the row of the total is its foot."""
    first, *others = heads
    head = [html.Th(first), *(html.Th(head, className="number") for head in others)]
    parts = [html.Thead(html.Tr(head)), html.Tbody(list(rows))]
    if total is not None:
        parts.append(html.Tfoot(total))
    return html.Table(parts, className="plain-table pinned")
