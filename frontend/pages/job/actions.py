"""What a visitor may do to a job: submit another like it, pause, resume, cancel."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser, is_press_of
from frontend.components.cards import link_button
from frontend.components.next_round import next_round
from frontend.components.notices import notice, refusal
from frontend.components.states import FINAL_STATES
from frontend.routing import path_to
from maat.api.job_answers import JobOut


class Pressed(TypedDict):
    """A press of a button of the job: when, and what it stood for."""

    at: int
    action: str


def register(app: Dash, api: Api) -> None:
    in_browser(
        app,
        "openOn",
        Output("job-cancel-ask", "opened", allow_duplicate=True),
        Input("job-cancel-pressed", "data"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(cancel, api),
        output={"asks": Output("job-cancel-ask", "opened"), "notices": NOTICES},
        inputs={
            "_yes": Input("job-cancel-yes", "n_clicks"),
            "_no": Input("job-cancel-no", "n_clicks"),
        },
        state={"job_id": State("job-id", "data")},
        prevent_initial_call=True,
        running=[(Output("job-cancel-yes", "loading"), True, False)],
    )
    answer(
        app,
        partial(pause, api),
        output={"changed": Output("job-changed", "data"), "notices": NOTICES},
        inputs={"pressed": Input("job-pause-pressed", "data")},
        state={"job_id": State("job-id", "data")},
        prevent_initial_call=True,
    )


def buttons(job: JobOut) -> html.Div:
    """The way to a job like it, and the buttons that act on it while it lives."""
    way = path_to("/submit", cluster=job["cluster_id"], like=job["id"])
    parts = [
        link_button("Submit another like it", way),
        *_edit_button(job),
        *_pause_button(job),
        *_cancel_button(job),
    ]
    return html.Div(parts, className="actions")


def _edit_button(job: JobOut) -> list[Component]:
    if job["state"] in FINAL_STATES:
        return []
    button = dmc.Button(
        "Edit",
        id="job-edit-open",
        variant="default",
        size="xs",
        **click_target("job-edit-pressed", action="edit"),
    )
    return [button]


def _pause_button(job: JobOut) -> list[Component]:
    if job["state"] in FINAL_STATES or job["cancel_requested"]:
        return []
    resumes = job["pause_requested"]
    button = dmc.Button(
        "Resume job" if resumes else "Pause job",
        id="job-pause",
        variant="default",
        size="xs",
        **click_target("job-pause-pressed", action="resume" if resumes else "pause"),
    )
    return [button]


def _cancel_button(job: JobOut) -> list[Component]:
    if job["state"] in FINAL_STATES:
        return []
    if job["cancel_requested"]:
        return [html.Span("cancelling", className="caption")]
    button = dmc.Button(
        "Cancel job",
        id="job-cancel",
        variant="default",
        size="xs",
        **click_target("job-cancel-pressed"),
    )
    return [button]


async def pause(api: Api, *, pressed: Pressed | None, job_id: str) -> Changes:
    """Pause the job, or let it go on: what the button said when it was pressed."""
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            if pressed["action"] == "resume":
                job = await maat.resume_job(job_id)
                considered = await next_round(maat, job["cluster_id"], "the job again")
                told = notice("In the queue", considered)
            else:
                await maat.pause_job(job_id)
                told = notice("Pausing", "The job saves its work and gives its GPUs back.")
    except Failure as error:
        return {"notices": refusal(error)}
    return {"notices": told, "changed": pressed["at"]}


async def cancel(api: Api, *, _yes: int | None, _no: int | None, job_id: str) -> Changes:
    """Close the dialog, and cancel the job if the owner confirmed it."""
    if not is_press_of("job-cancel-yes"):
        return {"asks": False}
    try:
        async with api.visitor() as maat:
            await maat.cancel_job(job_id)
    except Failure as error:
        return {"asks": False, "notices": refusal(error)}
    return {"asks": False, "notices": notice("Cancelling", "The job stops at the next round.")}
