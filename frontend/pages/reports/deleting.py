"""Asks before a kept report or a schedule is deleted, and deletes it."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.dialogs import question
from frontend.components.notices import notice, refusal
from maat.client import calls

DELETE = "reports-delete"
REPORT, SCHEDULE = "delete-report", "delete"
_LOST = {
    REPORT: "The report and its files are gone from here then. What was delivered stays.",
    SCHEDULE: "No further report is made then, and its list of deliveries is gone. Kept ones stay.",
}


class Pressed(TypedDict, total=False):
    """A press of a button of a row: of a kept report, or of a schedule."""

    at: int
    action: str
    name: str
    report: str
    schedule: str
    version: str


def delete_dialog() -> dmc.Modal:
    return question(DELETE, "Delete this?", keeps="Keep it", does="Delete")


def register_deleting(app: Dash, api: Api) -> None:
    answer(
        app,
        ask,
        output={
            "asks": Output(f"{DELETE}-ask", "opened"),
            "words": Output(f"{DELETE}-ask-text", "children"),
            "chosen": Output(f"{DELETE}-chosen", "data"),
        },
        inputs={"pressed": Input("reports-pressed", "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(delete, api),
        output={
            "asks": Output(f"{DELETE}-ask", "opened", allow_duplicate=True),
            "changed": Output("reports-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "_yes": Input(f"{DELETE}-yes", "n_clicks"),
            "_no": Input(f"{DELETE}-no", "n_clicks"),
        },
        state={"chosen": State(f"{DELETE}-chosen", "data")},
        prevent_initial_call=True,
        running=[(Output(f"{DELETE}-yes", "loading"), True, False)],
    )


async def ask(*, pressed: Pressed | None) -> Changes:
    """Ask whether to delete what the pressed button stands for."""
    if not pressed or pressed["action"] not in _LOST:
        return NOTHING
    words = f"{pressed['name']}. {_LOST[pressed['action']]}"
    return {"asks": True, "words": words, "chosen": pressed}


async def delete(api: Api, *, _yes: int | None, _no: int | None, chosen: Pressed | None) -> Changes:
    """Close the dialog, and delete the report or the schedule if that was confirmed."""
    if not is_press_of(f"{DELETE}-yes") or not chosen:
        return {"asks": False}
    is_report = chosen["action"] == REPORT
    try:
        async with api.visitor() as maat:
            if is_report:
                await maat.send(calls.delete_report(chosen["report"]))
            else:
                await maat.send(calls.unschedule_report(chosen["schedule"]))
    except Failure as error:
        return {"asks": False, "notices": refusal(error)}
    told = notice("Report deleted" if is_report else "Schedule deleted")
    return {"asks": False, "changed": chosen["at"], "notices": told}
