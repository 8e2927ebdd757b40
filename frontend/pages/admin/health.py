"""What Maat needs and has, on the page of administration: what is missing, and the remedy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from frontend.api import Api
from frontend.callbacks import Changes, answer
from frontend.components.cards import card, error_state, scrolls, skeleton
from frontend.formatting import clock, duration
from frontend.loading import loaded
from maat.api.service import HealthOut, ReadyOut
from maat.client import ApiError

EVERY_MILLISECONDS = 15_000
NOT_READY = 503
PARTS = {
    "database": "Database",
    "schema": "Tables of the database",
    "broker": "Queue",
    "worker": "Worker",
    "rounds": "Rounds",
    "disk": "Disk",
}
"""What GET /readyz tries, as the page names it."""
_DATABASE = {"ok": "answers", "slow": "answers slowly", "damaged": "is damaged"}


def cards() -> html.Div:
    return html.Div(
        [
            card("Health", html.Div(skeleton(120), id="admin-health", role="status"), mb=12),
            dcc.Interval(id="admin-health-tick", interval=EVERY_MILLISECONDS),
        ]
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_health, api),
        output={"health": Output("admin-health", "children")},
        inputs={"_tick": Input("admin-health-tick", "n_intervals")},
    )


async def show_health(api: Api, *, _tick: object) -> Changes:
    async with api.visitor() as maat:
        ready, health = await asyncio.gather(loaded(maat.ready()), loaded(maat.health()))
    lacks = lacks_of(ready.failure)
    if ready.failure and not lacks:
        return {"health": error_state(ready.failure)}
    return {"health": health_table(ready.answer, lacks, health.answer)}


def lacks_of(failure: Exception | None) -> dict[str, str]:
    """Return what is missing, each with its sentence; nothing of another failure."""
    if not isinstance(failure, ApiError) or failure.status != NOT_READY:
        return {}
    return {one.field: one.sentence for one in failure.errors}


def health_table(
    ready: ReadyOut | None, lacks: Mapping[str, str], health: HealthOut | None
) -> Component:
    """Each thing that Maat needs: whether it is there, and what is known of it.

    `ready`: None if something is missing, which `lacks` names. `health`: None if it did not come.
    """
    tried = () if ready is None else ready["checked"]
    known = {} if health is None else details(health)
    rows = [_row(label, _look(name, tried, lacks), known) for name, label in PARTS.items()]
    if health is not None:
        rows += [
            _row("Version", ("", health["version"]), {}),
            _row("Last answer", ("", f"{clock(health['time'])} UTC"), {}),
        ]
    verdict = "⚠ Something is missing." if lacks else "✓ All that Maat needs is there."
    table = html.Table(html.Tbody(rows), className="plain-table health")
    scroller = scrolls("admin-health-parts", table, label="What Maat needs")
    return html.Div([html.Div(verdict, className="sentence"), scroller])


def details(health: HealthOut) -> dict[str, str]:
    """Return what is known of a part that is there, by its label."""
    age = health["worker"]["last_round_age_seconds"]
    return {
        PARTS["database"]: _DATABASE[health["database"]],
        PARTS["disk"]: "has room" if health["disk"] == "ok" else "is full",
        PARTS["rounds"]: "none yet" if age is None else f"the last one {duration(age)} ago",
    }


def _look(name: str, tried: Sequence[str], lacks: Mapping[str, str]) -> tuple[str, str]:
    """Return mark and words: missing, there, or not tried because something else is missing."""
    if name in lacks:
        return "⚠", lacks[name]
    return ("✓", "") if name in tried else ("–", "not tried, while something else is missing")


def _row(label: str, look: tuple[str, str], known: Mapping[str, str]) -> html.Tr:
    mark, words = look
    told = words or known.get(label, "works")
    return html.Tr([html.Th(label, scope="row"), html.Td(mark), html.Td(told, className="wraps")])
