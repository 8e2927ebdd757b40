"""Clusters on the page of administration: the list, and a dialog that changes or pauses one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser, is_press_of
from frontend.components.cards import card, error_state, scrolls, skeleton
from frontend.components.dialogs import dialog
from frontend.components.notices import notice
from frontend.components.states import FINAL_STATES
from frontend.forms import FormValues, errors_by_field, number_or_name, wrong_number
from frontend.loading import loaded, may
from frontend.pages.admin.cluster_rows import cluster_table
from maat.api.clusters import ClusterChanges
from maat.client import AsyncClient, calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

MAY_CHANGE = "clusters:write"
NUMBERS = ("round_seconds", "speed", "keep_rounds", "jobs_per_gpu")
BOUNDS = ("least_stay_seconds", "most_moves_per_hour")
"""Numbers that may be left out."""
_WHOLE = ("keep_rounds", "jobs_per_gpu", "most_moves_per_hour")
FIELDS = ("name", *NUMBERS, "interference", *BOUNDS)
_LABELS = {
    "name": "Name",
    "round_seconds": "Seconds between two rounds",
    "speed": "Cluster seconds per second",
    "keep_rounds": "Rounds to keep",
    "jobs_per_gpu": "Jobs per GPU (1 or 2)",
    "interference": "Slowdown on a shared GPU",
    "least_stay_seconds": "Least stay of a job (s)",
    "most_moves_per_hour": "Most moves of a job in an hour",
}


class Pressed(TypedDict):
    """A press of the button that opens the dialog of one cluster."""

    at: int
    cluster: str
    name: str
    round_seconds: str
    speed: str
    keep_rounds: str
    jobs_per_gpu: str
    interference: str
    least_stay_seconds: str
    most_moves_per_hour: str
    paused: str
    version: str


def field_id(name: str) -> str:
    return "admin-cluster-" + name.replace("_", "-")


def cards() -> html.Div:
    return html.Div(
        [
            card("Clusters", scrolls("admin-clusters", skeleton(120), label="Clusters"), mb=12),
            _dialog(),
            dcc.Store(id="admin-cluster-pressed"),
            dcc.Store(id="admin-clusters-changed", data=0),
        ]
    )


def _dialog() -> dmc.Modal:
    slowdown = dmc.TextInput(
        id=field_id("interference"),
        label=_LABELS["interference"],
        placeholder="where GPUs are shared: synthetic, 1.25, or measurements",
        value="",
    )
    numbers = [
        dmc.NumberInput(
            id=field_id(name),
            label=_LABELS[name],
            value="",
            placeholder="no bound" if name in BOUNDS else None,
            allowDecimal=name not in _WHOLE,
            clampBehavior="none",
        )
        for name in (*NUMBERS, *BOUNDS)
    ]
    numbers.insert(len(NUMBERS), slowdown)
    buttons = [
        dmc.Button("Pause", id="admin-cluster-pause", variant="default", n_clicks=0),
        dmc.Button("Save", id="admin-cluster-save", n_clicks=0),
    ]
    form = html.Div(
        [
            html.Div(id="admin-cluster-problem"),
            dmc.TextInput(id=field_id("name"), label=_LABELS["name"], value="", withAsterisk=True),
            *numbers,
            html.Div("Its policy is changed below, after a preview.", className="hint"),
            dmc.Group(buttons, justify="space-between", mt=4),
        ],
        className="form-stack",
        **submits("admin-cluster-save"),
    )
    return dialog("admin-cluster", "Cluster", form)


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_clusters, api),
        output={"clusters": Output("admin-clusters", "children")},
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("admin-clusters-changed", "data"),
        },
    )
    answer(
        app,
        open_cluster,
        output={
            "title": Output("admin-cluster", "title"),
            "values": {name: Output(field_id(name), "value") for name in FIELDS},
            "errors": {
                name: Output(field_id(name), "error", allow_duplicate=True) for name in FIELDS
            },
            "problem": Output("admin-cluster-problem", "children", allow_duplicate=True),
            "pause": Output("admin-cluster-pause", "children"),
        },
        inputs={"pressed": Input("admin-cluster-pressed", "data")},
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "openOn",
        Output("admin-cluster", "opened", allow_duplicate=True),
        Input("admin-cluster-pressed", "data"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(act_on_cluster, api),
        output={
            "opened": Output("admin-cluster", "opened"),
            "problem": Output("admin-cluster-problem", "children"),
            "errors": {name: Output(field_id(name), "error") for name in FIELDS},
            "changed": Output("admin-clusters-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "saves": Input("admin-cluster-save", "n_clicks"),
            "pauses": Input("admin-cluster-pause", "n_clicks"),
        },
        state={
            "pressed": State("admin-cluster-pressed", "data"),
            "values": {name: State(field_id(name), "value") for name in FIELDS},
        },
        prevent_initial_call=True,
        running=[(Output("admin-cluster-save", "loading"), True, False)],
    )


async def show_clusters(api: Api, *, _live: object, _changed: int) -> Changes:
    try:
        async with api.visitor() as maat:
            me, clusters = await asyncio.gather(loaded(maat.me()), maat.clusters())
            living = await asyncio.gather(*(loaded(_living(maat, one["id"])) for one in clusters))
    except Failure as error:
        return {"clusters": error_state(error)}
    counted = [one.answer for one in living]
    rows = list(zip(clusters, counted, strict=True))
    return {"clusters": cluster_table(rows, may=may(me, MAY_CHANGE))}


async def _living(maat: AsyncClient, cluster_id: str) -> int:
    """Count the jobs of a cluster that have not ended."""
    page = await maat.send(calls.jobs(cluster=cluster_id, limit=1))
    counts = page["state_counts"].items()
    return sum(count for state, count in counts if state not in FINAL_STATES)


async def open_cluster(*, pressed: Pressed | None) -> Changes:
    """Show in the dialog how the cluster is now."""
    if not pressed:
        return NOTHING
    return {
        "title": pressed["name"],
        "values": {
            "name": pressed["name"],
            "round_seconds": float(pressed["round_seconds"]),
            "speed": float(pressed["speed"]),
            "keep_rounds": int(pressed["keep_rounds"]),
            "jobs_per_gpu": int(pressed["jobs_per_gpu"]),
            "interference": pressed["interference"],
            **{name: "" if bound is None else bound for name, bound in _bounds_of(pressed)},
        },
        "errors": dict.fromkeys(FIELDS, ""),
        "problem": None,
        "pause": "Resume" if pressed["paused"] else "Pause",
    }


async def act_on_cluster(
    api: Api, *, saves: int | None, pauses: int | None, pressed: Pressed | None, values: FormValues
) -> Changes:
    """Save what was changed of the cluster; or pause it, or let it go on."""
    if not pressed or not (saves or pauses):
        return NOTHING
    pausing = is_press_of("admin-cluster-pause")
    wrong = {} if pausing else unfinished(values, pressed)
    if wrong:
        return {"errors": _beside(wrong), "problem": None}
    version, done = int(pressed["version"]), "Cluster changed"
    try:
        async with api.visitor() as maat:
            if pausing:
                action = "resume" if pressed["paused"] else "pause"
                await maat.act_on_cluster(pressed["cluster"], action, version=version)
                done = "Cluster runs on" if pressed["paused"] else "Cluster paused"
            else:
                changes = changes_of(values, pressed)
                await maat.change_cluster(pressed["cluster"], changes, version=version)
    except Failure as error:
        beside, above = errors_by_field(error, place_of, empty_name="Give it a name.")
        return {"errors": _beside(beside), "problem": above}
    return {
        "opened": False,
        "problem": None,
        "errors": _beside({}),
        "changed": pressed["at"],
        "notices": notice(done, str(values["name"])),
    }


def unfinished(values: FormValues, pressed: Pressed) -> dict[str, str]:
    """Return what the fields themselves can see to be wrong, by field."""
    numbers = (*NUMBERS, *BOUNDS)
    found = {name: wrong_number(ClusterChanges, name, values[name]) for name in numbers}
    found |= {name: "Give a number." for name in NUMBERS if values[name] in ("", None)}
    if not values["name"]:
        found["name"] = "Give it a name."
    if pressed["interference"] and not _slowdown(values):
        found["interference"] = "Give synthetic, a slowdown such as 1.25, or measurements."
    return {name: words for name, words in found.items() if words}


def changes_of(values: FormValues, pressed: Pressed) -> RawBody:
    """Return the fields that differ from what the cluster had."""
    before = {name: float(pressed[name]) for name in NUMBERS}  # type: ignore[literal-required]
    changes: RawBody = {n: values[n] for n in NUMBERS if float(values[n]) != before[n]}
    for name, bound in _bounds_of(pressed):
        wanted = None if values[name] in ("", None) else values[name]
        if wanted != bound:
            changes[name] = wanted
    if _slowdown(values) != pressed["interference"]:
        changes["interference"] = number_or_name(_slowdown(values))
    return changes | ({"name": values["name"]} if values["name"] != pressed["name"] else {})


def _slowdown(values: FormValues) -> str:
    return str(values["interference"] or "").strip()


def _bounds_of(pressed: Pressed) -> list[tuple[str, float | None]]:
    """Return the bounds that the cluster had, by name."""
    texts = [(name, str(pressed[name])) for name in BOUNDS]  # type: ignore[literal-required]
    return [(name, float(text) if text else None) for name, text in texts]


def place_of(problem: FieldProblem) -> str | None:
    return problem.field if problem.field in FIELDS else None


def _beside(errors: Mapping[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in FIELDS}
