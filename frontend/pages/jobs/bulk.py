"""The dialog that acts on all jobs that the list's filters match, after a preview."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import refused_state
from frontend.components.dialogs import dialog
from frontend.components.labels import labels_of, wrong_labels
from frontend.components.next_round import next_round
from frontend.components.notices import notice, refusal
from frontend.components.numbers import number_field
from frontend.components.priority import priority_field
from frontend.components.states import FINAL_STATES, JOB_STATES, state_chip
from frontend.components.weight import wrong_weight
from frontend.formatting import plural
from frontend.pages.jobs.filters import Filters, asked
from frontend.shell import NO_CLUSTER
from maat.api.bulk import BulkOut
from maat.api.jobs import JobBody

_LIVING = tuple(name for name in JOB_STATES if name not in FINAL_STATES)
_ACTIONS = {
    "pause": "Pause: give GPUs back and wait",
    "hold": "Hold: keep those without GPUs from starting",
    "resume": "Resume: back into the queue",
    "priority": "Give another priority",
    "weight": "Give another weight",
    "label": "Set or remove labels",
    "cancel": "Cancel: end for good",
}
_DONE = {
    "pause": ("Pausing", "The next round takes their GPUs."),
    "hold": ("Held", "They do not start until they are released."),
    "resume": ("In the queue", ""),  # see next_round()
    "priority": ("Changed", "The next round sees their priority."),
    "weight": ("Changed", "The next round sees their weight."),
    "label": ("Changed", "They have the labels now."),
    "cancel": ("Cancelling", "They stop at the next round."),
}
_ENDED = "All jobs that the filters match have ended: nothing changes them. Choose other states."
_WITHOUT = "-"  # before the key of a label that is removed
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
    labels = dmc.TagsInput(
        id="jobs-bulk-labels",
        label="Labels",
        description="key=value sets a label, -key removes one. Others stay.",
        placeholder="team=vision, then Enter",
        value=[],
        clearable=True,
        splitChars=[",", " "],
        inputWrapperOrder=["label", "input", "description", "error"],
    )
    weight = number_field("jobs-bulk-weight", JobBody, "weight")
    content = [
        dmc.Select(id="jobs-bulk-action", data=choices, **chosen),
        html.Div(priority_field("jobs-bulk-priority"), id="jobs-bulk-priority-box", style=HIDDEN),
        html.Div(weight, id="jobs-bulk-weight-box", style=HIDDEN),
        html.Div(labels, id="jobs-bulk-labels-box", style=HIDDEN),
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
            "priority_box": Output("jobs-bulk-priority-box", "style"),
            "weight_box": Output("jobs-bulk-weight-box", "style"),
            "labels_box": Output("jobs-bulk-labels-box", "style"),
            "wrong_weight": Output("jobs-bulk-weight", "error"),
            "wrong_labels": Output("jobs-bulk-labels", "error"),
        },
        inputs={
            "_open": Input("jobs-bulk", "n_clicks"),
            "action": Input("jobs-bulk-action", "value"),
            "priority": Input("jobs-bulk-priority", "value"),
            "weight": Input("jobs-bulk-weight", "value"),
            "labels": Input("jobs-bulk-labels", "value"),
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
            "priority": State("jobs-bulk-priority", "value"),
            "weight": State("jobs-bulk-weight", "value"),
            "labels": State("jobs-bulk-labels", "value"),
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
    priority: str | None,
    weight: float | str | None,
    labels: list[str] | None,
    _no: int | None,
    filters: Filters,
    cluster_id: str | None,
) -> Changes:
    """Open the dialog and say what the action would change; close it again."""
    if ctx.triggered_id == "jobs-bulk-no":
        return {"opened": False}
    if not _open:
        return NOTHING
    shown: dict[str, object] = {
        "opened": True,
        "priority_box": {} if action == "priority" else HIDDEN,
        "weight_box": {} if action == "weight" else HIDDEN,
        "labels_box": {} if action == "label" else HIDDEN,
        "wrong_weight": wrong_weight(weight) if action == "weight" else "",
        "wrong_labels": wrong_changes(labels) if action == "label" else "",
    }
    if shown["wrong_weight"]:
        return {**shown, "told": "Say which weight.", "count": None, "off": True}
    if action == "label" and (shown["wrong_labels"] or not labels):
        return {**shown, "told": "Say which labels.", "count": None, "off": True}
    if not _states(filters):
        return {**shown, "told": _ENDED, "count": None, "off": True}
    body = _body(action, filters, cluster_id, priority=priority, weight=weight, labels=labels)
    try:
        async with api.visitor() as maat:
            found = await maat.change_jobs(body | {"dry_run": True})
    except Failure as error:
        return {**shown, "told": refused_state(error), "count": None, "off": True}
    return {
        **shown,
        "told": preview_words(found),
        "count": found["count"],
        "off": found["count"] == 0,
    }


async def act(
    api: Api,
    *,
    _yes: int | None,
    action: str,
    priority: str | None,
    weight: float | str | None,
    labels: list[str] | None,
    count: int | None,
    filters: Filters,
    cluster_id: str | None,
) -> Changes:
    """Do it, if as many jobs match as the preview said."""
    if not is_press_of("jobs-bulk-yes") or count is None:
        return NOTHING
    try:
        async with api.visitor() as maat:
            body = _body(
                action, filters, cluster_id, priority=priority, weight=weight, labels=labels
            )
            changed = await maat.change_jobs(body | {"expected_count": count})
            title, words = _DONE[action]
            if action == "resume":
                words = await next_round(maat, cluster_id, "them again")
    except Failure as error:
        return {"notices": refusal(error)}
    return {
        "opened": False,
        "notices": notice(f"{title}: {plural(changed['count'], 'job')}", words),
    }


def _body(
    action: str,
    filters: Filters,
    cluster_id: str | None,
    *,
    priority: str | None = None,
    weight: float | str | None = None,
    labels: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The request; which jobs are meant is always said by their states."""
    found = asked(filters) | {"state": _states(filters)}
    if cluster_id and cluster_id != NO_CLUSTER:
        found["cluster"] = cluster_id
    what: dict[str, Any] = {}
    if action == "priority" and priority is not None:
        what["priority"] = int(priority)
    if action == "weight":
        what["weight"] = weight
    if action == "label":
        what["labels"] = label_changes(labels)
    return {"action": action, "filter": found, **what}


def _states(filters: Filters) -> list[str]:
    """The states of the filters in which a job can change: none if they name ended jobs alone."""
    return [state for state in asked(filters).get("state", _LIVING) if state in _LIVING]


def label_changes(texts: Sequence[str] | None) -> dict[str, str | None]:
    """Return what the field holds as labels to set; None for a key that is removed."""
    given = list(texts or ())
    sets = labels_of([text for text in given if not text.startswith(_WITHOUT)])
    gone = {text.removeprefix(_WITHOUT): None for text in given if text.startswith(_WITHOUT)}
    return {**sets, **gone}


def wrong_changes(texts: Sequence[str] | None) -> str:
    """Return what is wrong with what the field holds; nothing if the service takes it."""
    given = list(texts or ())
    # A key that is removed looks like one that is set.
    as_set = [f"{t.removeprefix(_WITHOUT)}=x" if t.startswith(_WITHOUT) else t for t in given]
    wrong = wrong_labels(as_set)
    return "A key comes twice: keep one." if wrong.startswith("A key") else wrong


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
