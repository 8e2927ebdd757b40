"""A round in words: its sentence, the solver's terms, and its row in the list."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.components.states import gpu_chip, what_fell_back
from frontend.figures.rounds import prices_by_type
from frontend.formatting import ABSENT, clock, count, number, percent, plural
from frontend.routing import path_to
from maat.api.rounds import RoundDetailOut, RoundOut
from maat.colours import gpu_order

PROVED = 1e-9  # a gap that is a rounding: the optimum is proved


def row_of(entry: RoundOut, cluster_id: str, *, shown: str) -> dict[str, object]:
    """Return the row of a round; the one that is `shown` is marked."""
    return {
        "shown": str(entry["number"]) == shown,
        "number": str(entry["number"]),
        "href": path_to(f"/rounds/{entry['number']}", cluster=cluster_id),
        "at": clock(entry["at"]).rsplit(" ", 1)[-1],
        "date": f"{clock(entry['at'])} of cluster time",
        "gpus": count(entry["gpus_used"]),
        "gpus_exact": f"{count(entry['gpus_used'])} of {count(entry['gpus_total'])}",
        "jobs": f"{count(entry['running_jobs'])} / {count(entry['pending_jobs'])}",
        "changes": count(entry["changes"]),
        "gap": gap_text(entry["gap"]),
        "gap_exact": ABSENT
        if entry["gap"] is None
        else f"{entry['gap']:.3g} as a share of the bound",
    }


def gap_text(gap: float | None) -> str:
    """A proved optimum reads `0`; an open gap its share of the bound."""
    if gap is None:
        return ABSENT
    return "0" if gap < PROVED else "<0.1 %" if gap < 0.001 else f"{gap * 100:.1f} %"


def facts_of(entry: RoundDetailOut) -> list[Component]:
    """The solver's terms of a round: what it decided, how sure it was, and the prices."""
    solved = [html.Span([html.B(name), value]) for name, value in _figures_of(entry)]
    strip = html.Div(solved, className="strip")
    prices = prices_by_type(entry["prices"] or {})
    chips = [gpu_chip(name, f"{name} price {number(prices[name])}") for name in gpu_order(prices)]
    legend = html.Div(chips, className="legend")
    return [strip, legend]


def verdict_parts(entry: RoundDetailOut) -> list[Component]:
    """Return the round in a sentence, after what went wrong with it."""
    parts: list[Component] = []
    if entry["fallback"]:
        message = entry["message"] or "The present allocation stayed."
        parts.append(dmc.Alert(message, title=what_fell_back(entry), color="yellow", mb=8))
    if _out_of_time(entry):
        ended = "⏱ A clock ended the solver, not a proof: another machine may decide otherwise."
        parts.append(html.Div(ended, className="state state-yellow wraps"))
    return [*parts, html.Div(verdict_of(entry), className="sentence verdict")]


def verdict_of(entry: RoundOut) -> str:
    """Say what the round did, and how sure it is that nothing better could be done."""
    use = f"{count(entry['gpus_used'])} of {plural(entry['gpus_total'], 'GPU')}"
    waits = entry["pending_jobs"]
    wait = "nobody waits" if not waits else f"{plural(waits, 'job')} waiting"
    moved = "nothing moved" if not entry["changes"] else f"{plural(entry['changes'], 'change')}"
    told = f"{plural(entry['running_jobs'], 'job')} on {use}, {wait}, {moved}."
    gap = entry["gap"]
    if gap is None or entry["fallback"]:
        return told
    return f"{told} {'No other choice is better.' if gap < PROVED else _open_gap(gap)}"


def _open_gap(gap: float) -> str:
    return f"At most {gap_text(gap).removeprefix('<')} better is possible."


def _figures_of(entry: RoundOut) -> Sequence[tuple[str, str]]:
    used, there = entry["gpus_used"], entry["gpus_total"]
    share = percent(used / there) if there else ABSENT
    return [
        ("Policy", entry["policy"]),
        ("Placer", entry["placer"]),
        ("Status", entry["status"]),
        ("Method", entry["method"] or ABSENT),
        ("Objective", number(entry["objective"], 5)),
        ("Gap", gap_text(entry["gap"])),
        ("Solve", _milliseconds(entry["solve_seconds"])),
        ("Decision", _milliseconds(entry["policy_seconds"])),
        ("Placement", _milliseconds(entry["place_seconds"])),
        ("GPUs", f"{count(used)} of {count(there)} ({share})"),
        ("Running", count(entry["running_jobs"])),
        ("Pending", count(entry["pending_jobs"])),
        ("Moves", count(entry["changes"])),
    ]


def _milliseconds(seconds: float | None) -> str:
    return ABSENT if seconds is None else f"{seconds * 1000:.1f} ms"


def _out_of_time(entry: RoundDetailOut) -> bool:
    """Return whether a clock ended the solver; False if the record was pruned."""
    record = entry["record"]
    return bool(record and record["report"].get("out_of_time"))
