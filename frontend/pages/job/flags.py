"""What is unlikely of what a job reports: said on its page, and dismissed by who answers for it."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card
from frontend.components.notices import notice, refusal
from frontend.formatting import clock
from maat.api.job_answers import FlagOut, JobOut
from maat.api.job_words import WHILE_FLAGGED

MAY_DISMISS = "jobs:dismiss"


class Pressed(TypedDict):
    """A press of the button of a flag: when, and of which kind."""

    at: int
    kind: str


def flags_place() -> html.Div:
    return html.Div([html.Div(id="job-flags"), dcc.Store(id="job-flag-pressed")])


def is_flagged(job: JobOut) -> bool:
    """Return whether a flag stands that nobody has dismissed."""
    return any(flag["dismissed_at"] is None for flag in job["flags"])


def flags_view(job: JobOut, *, may_dismiss: bool) -> Component | None:
    """The flags of a job, or nothing."""
    if not job["flags"]:
        return None
    content: list[Component] = [_flag(flag, may_dismiss) for flag in job["flags"]]
    if is_flagged(job):
        content.append(html.Div(WHILE_FLAGGED, className="hint"))
    return card("What it reports is unlikely", content)


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(dismiss, api),
        output={
            "changed": Output("job-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"pressed": Input("job-flag-pressed", "data")},
        state={"job_id": State("job-id", "data")},
        prevent_initial_call=True,
    )


async def dismiss(api: Api, *, pressed: Pressed | None, job_id: str) -> Changes:
    """Dismiss the flag whose button was pressed."""
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            await maat.dismiss_flag(job_id, pressed["kind"])
    except Failure as error:
        return {"notices": refusal(error)}
    told = notice("Flag dismissed", "The job is believed again from the next round on.")
    return {"notices": told, "changed": pressed["at"]}


def _flag(flag: FlagOut, may_dismiss: bool) -> Component:
    since = f"Since {clock(flag['at'])}, attempt {flag['attempt']}."
    if flag["dismissed_at"] is not None:
        since = f"{since} Dismissed by {flag['dismissed_by']}."
    words = [html.Div(flag["sentence"], className="sentence"), html.Div(since, className="hint")]
    if not may_dismiss or flag["dismissed_at"] is not None:
        return html.Div(words)
    button = dmc.Button(
        "It is right: dismiss",
        id=f"job-flag-{flag['kind']}",
        variant="default",
        size="xs",
        **click_target("job-flag-pressed", kind=flag["kind"]),
    )
    return html.Div([*words, button])
