"""The dialog that acts on all jobs that the list's filters match, after a preview."""

from __future__ import annotations

from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import error_state
from frontend.components.dialogs import dialog
from frontend.components.notices import notice, refusal
from frontend.components.states import FINAL_STATES, JOB_STATES, state_chip
from frontend.formatting import plural
from frontend.pages.jobs.blocks import Filters
from frontend.routing import aria
from frontend.shell import NO_CLUSTER
from maat.api.bulk import BulkOut

_LIVING = tuple(name for name in JOB_STATES if name not in FINAL_STATES)
_ACTIONS = {
    "pause": "Pause: give GPUs back and wait",
    "hold": "Hold: keep those without GPUs from starting",
    "resume": "Resume: back into the queue",
    "cancel": "Cancel: end for good",
}
_DONE = {
    "pause": ("Pausing", "The next round takes their GPUs."),
    "hold": ("Held", "They do not start until they are released."),
    "resume": ("In the queue", "The next round considers them again."),
    "cancel": ("Cancelling", "They stop at the next round."),
}
_SHOWN = 8


def bulk_button() -> dmc.Button:
    return dmc.Button("Act on these jobs", id="jobs-bulk", variant="default", size="xs")


def bulk_dialog() -> list[Component]:
    choices = [{"value": name, "label": words} for name, words in _ACTIONS.items()]
    chosen = {"value": "pause", "allowDeselect": False, **aria("Action")}
    buttons = [
        dmc.Button("Leave them", id="jobs-bulk-no", variant="default"),
        dmc.Button("Do it", id="jobs-bulk-yes", disabled=True, className="danger", color="red"),
    ]
    content = [
        dmc.Select(id="jobs-bulk-action", data=choices, **chosen),
        html.Div(id="jobs-bulk-preview", className="hint", role="status"),
        dmc.Group(buttons, justify="flex-end"),
    ]
    stack = dmc.Stack(content, gap=12)
    return [
        dialog("jobs-bulk-ask", "Act on the jobs that the filters match", stack),
        dcc.Store(id="jobs-bulk-count"),
    ]


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(preview, api),
        output={
            "opened": Output("jobs-bulk-ask", "opened"),
            "told": Output("jobs-bulk-preview", "children"),
            "count": Output("jobs-bulk-count", "data"),
            "off": Output("jobs-bulk-yes", "disabled"),
        },
        inputs={
            "_open": Input("jobs-bulk", "n_clicks"),
            "action": Input("jobs-bulk-action", "value"),
            "_no": Input("jobs-bulk-no", "n_clicks"),
        },
        state={
            "filters": State("jobs-filters", "data"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(act, api),
        output={
            "opened": Output("jobs-bulk-ask", "opened", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"_yes": Input("jobs-bulk-yes", "n_clicks")},
        state={
            "action": State("jobs-bulk-action", "value"),
            "count": State("jobs-bulk-count", "data"),
            "filters": State("jobs-filters", "data"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=[(Output("jobs-bulk-yes", "loading"), True, False)],
    )


async def preview(
    api: Api,
    *,
    _open: int | None,
    action: str,
    _no: int | None,
    filters: Filters,
    cluster_id: str | None,
) -> Changes:
    """Open the dialog and say what the action would change; close it again."""
    if ctx.triggered_id == "jobs-bulk-no":
        return {"opened": False}
    if not _open:
        return NOTHING
    try:
        async with api.visitor() as maat:
            found = await maat.change_jobs(_body(action, filters, cluster_id) | {"dry_run": True})
    except Failure as error:
        return {"opened": True, "told": error_state(error), "count": None, "off": True}
    return {
        "opened": True,
        "told": preview_words(found),
        "count": found["count"],
        "off": found["count"] == 0,
    }


async def act(
    api: Api,
    *,
    _yes: int | None,
    action: str,
    count: int | None,
    filters: Filters,
    cluster_id: str | None,
) -> Changes:
    """Do it, if as many jobs match as the preview said."""
    if not is_press_of("jobs-bulk-yes") or count is None:
        return NOTHING
    try:
        async with api.visitor() as maat:
            body = _body(action, filters, cluster_id) | {"expected_count": count}
            changed = await maat.change_jobs(body)
    except Failure as error:
        return {"notices": refusal(error)}
    title, words = _DONE[action]
    return {
        "opened": False,
        "notices": notice(f"{title}: {plural(changed['count'], 'job')}", words),
    }


def _body(action: str, filters: Filters, cluster_id: str | None) -> dict[str, Any]:
    """The request; without any filter all living jobs are meant, and said so by their states."""
    found: dict[str, Any] = {name: value for name, value in filters.items() if value}
    states = found.get("state", _LIVING)
    found["state"] = [state for state in states if state in _LIVING] or list(states)
    if cluster_id and cluster_id != NO_CLUSTER:
        found["cluster"] = cluster_id
    return {"action": action, "filter": found}


def preview_words(found: BulkOut) -> list[Component]:
    """How many jobs, in which states, the newest of them, and which are left out."""
    states = [
        html.Span([state_chip(state), f" {number} "]) for state, number in found["by_state"].items()
    ]
    names = ", ".join(job["name"] for job in found["preview"][:_SHOWN])
    more = found["count"] - min(len(found["preview"]), _SHOWN)
    lines: list[Component] = [html.P(f"It changes {plural(found['count'], 'job')}."), *states]
    if names:
        lines.append(html.P(f"{names}{f', and {more} more' if more > 0 else ''}"))
    left = [
        f"{plural(found['unchanged'], 'job')} more match and stay as they are."
        if found["unchanged"]
        else "",
        f"{plural(found['not_yours'], 'job')} more match and belong to other users."
        if found["not_yours"]
        else "",
    ]
    return [*lines, *(html.P(words) for words in left if words)]
