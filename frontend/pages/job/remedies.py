"""Presses a remedy of a job: shows what will change, then changes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import Props
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import error_state
from frontend.components.dialogs import dialog
from frontend.components.names import isolated
from frontend.components.notices import notice, refusal
from maat.api.job_answers import JobOut, Remedy
from maat.client import AsyncClient, calls, change_as_it_is_async

FIELDS = {
    "gpu_count": "GPUs",
    "min_gpus": "At least (GPUs)",
    "max_gpus": "At most (GPUs)",
    "gpu_types": "GPU types",
    "adaptivity": "What Maat may vary",
    "batch_size": "Batch size (samples)",
    "priority": "Priority",
    "weight": "Weight",
}
OF_TENANT = {"weight": "Weight of its tenant"}
GONE = "This remedy no longer helps: the cluster has changed since. The card shows what does now."


class Pressed(TypedDict):
    """A press of a remedy's button: when, and of which remedy."""

    at: int
    code: str


def remedy_dialog() -> html.Div:
    first: Props = {"data-autofocus": True}  # the answer that changes nothing
    buttons = [
        dmc.Button("Leave it", id="job-remedy-no", variant="default", **first),
        dmc.Button("Do it", id="job-remedy-yes"),
    ]
    content = [html.Div(id="job-remedy-text"), dmc.Group(buttons, justify="flex-end", mt=12)]
    return html.Div(
        [
            dcc.Store(id="job-remedy-pressed"),
            dcc.Store(id="job-remedy-chosen"),
            dialog("job-remedy-ask", "Do this?", content),
        ]
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(ask, api),
        output={
            "asks": Output("job-remedy-ask", "opened", allow_duplicate=True),
            "text": Output("job-remedy-text", "children"),
            "chosen": Output("job-remedy-chosen", "data"),
            "cannot": Output("job-remedy-yes", "disabled"),
        },
        inputs={"pressed": Input("job-remedy-pressed", "data")},
        state={"job_id": State("job-id", "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(do, api),
        output={
            "asks": Output("job-remedy-ask", "opened"),
            "changed": Output("job-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "clicks": Input("job-remedy-yes", "n_clicks"),
            "_no": Input("job-remedy-no", "n_clicks"),
        },
        state={
            "remedy": State("job-remedy-chosen", "data"),
            "job_id": State("job-id", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("job-remedy-yes", "loading"), True, False)],
    )


async def ask(api: Api, *, pressed: Pressed | None, job_id: str) -> Changes:
    """Show what the remedy would change."""
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            told = await maat.send(calls.explanation(job_id))
    except Failure as error:
        return {"asks": True, "text": error_state(error), "chosen": None, "cannot": True}
    remedy = next((one for one in told["remedies"] if one["code"] == pressed["code"]), None)
    if remedy is None:
        return {"asks": True, "text": html.P(GONE), "chosen": None, "cannot": True}
    return {"asks": True, "text": what_changes(remedy), "chosen": remedy, "cannot": False}


def what_changes(remedy: Remedy) -> list[Component]:
    """The remedy's sentence, and each field as it is and as it will be."""
    fields = OF_TENANT if remedy["action"] == "change-tenant" else FIELDS
    rows = [
        html.Tr(
            [
                html.Th(fields.get(name, name), scope="row"),
                html.Td(_shown(name, remedy["before"].get(name))),
                html.Td(_shown(name, value)),
            ]
        )
        for name, value in remedy["changes"].items()
    ]
    if not rows:
        return [html.P(remedy["sentence"])]
    head = html.Thead(html.Tr([html.Th(text) for text in ("", "now", "then")]))
    return [
        html.P(remedy["sentence"]),
        html.Table([head, html.Tbody(rows)], className="plain-table"),
    ]


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "any" if name == "gpu_types" else "none"
    return ", ".join(value) if isinstance(value, list) else str(value)


async def do(
    api: Api, *, clicks: int | None, _no: int | None, remedy: Remedy | None, job_id: str
) -> Changes:
    """Close the dialog, and do what the remedy says if the visitor confirmed it."""
    if not is_press_of("job-remedy-yes") or remedy is None:
        return {"asks": False}
    try:
        async with api.visitor() as maat:
            job = await maat.job(job_id)
            if not await do_remedy(maat, job, remedy):
                return {"asks": False, "notices": notice("Changed meanwhile", GONE)}
    except Failure as error:
        return {"asks": False, "notices": refusal(error)}
    told = notice(f"{isolated(job['name'])} changed", "The next round follows it.")
    return {"asks": False, "changed": clicks, "notices": told}


async def do_remedy(maat: AsyncClient, job: JobOut, remedy: Remedy) -> bool:
    """Do what the remedy says; return False if what it would change is another thing by now."""
    changes = remedy["changes"]
    match remedy["action"]:
        case "resume" | "release":
            (target,) = remedy["targets"] or [job["id"]]
            await maat.resume_job(target)
        case "restore-nodes":
            for node in remedy["targets"]:
                await maat.restore_node(job["cluster_id"], node)
        case "change-tenant":
            return await _change_if_same(
                lambda: maat.tenant(job["tenant"]),
                lambda version: maat.change_tenant(job["tenant"], changes, version=version),
                remedy["before"],
            )
        case _:
            return await _change_if_same(
                lambda: maat.job(job["id"]),
                lambda version: maat.change_job(job["id"], changes, version=version),
                remedy["before"],
            )
    return True


async def _change_if_same(
    read: Callable[[], Awaitable[Mapping[str, Any]]],
    change: Callable[[int], Awaitable[object]],
    before: Mapping[str, Any],
) -> bool:
    """Change what still is as the dialog showed it; what rounds change meanwhile is not asked."""

    async def change_that(now: Mapping[str, Any]) -> bool:
        if {name: now[name] for name in before} != before:
            return False
        await change(now["version"])
        return True

    return await change_as_it_is_async(read, change_that)
