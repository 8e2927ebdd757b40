"""Asks before a kept report or a schedule is deleted, and deletes it."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Output

from frontend.api import Api, Failure
from frontend.callbacks import Changes
from frontend.components.dialogs import question, register_question
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
    register_question(
        app,
        DELETE,
        pressed="reports-pressed",
        ask=words_of,
        act=partial(delete, api),
        changed=Output("reports-changed", "data", allow_duplicate=True),
    )


def words_of(pressed: Pressed) -> str | None:
    """What to ask before what the pressed button stands for is deleted."""
    lost = _LOST.get(pressed["action"])
    return None if lost is None else f"{pressed['name']}. {lost}"


async def delete(api: Api, *, chosen: Pressed) -> Changes:
    """Delete the report or the schedule."""
    is_report = chosen["action"] == REPORT
    try:
        async with api.visitor() as maat:
            if is_report:
                await maat.send(calls.delete_report(chosen["report"]))
            else:
                await maat.send(calls.unschedule_report(chosen["schedule"]))
    except Failure as error:
        return {"notices": refusal(error)}
    told = notice("Report deleted" if is_report else "Schedule deleted")
    return {"changed": chosen["at"], "notices": told}
