"""The form of a command filled as another command was declared; secrets are asked for again."""

from __future__ import annotations

from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State
from dash.development.base_component import Component

from frontend.addresses import address_note, quoted
from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import error_state
from frontend.components.priority import priority_choices
from frontend.forms import FormValues
from frontend.pages.submit.address import over
from frontend.pages.submit.run_fields import run_id
from frontend.pages.submit.run_model import FIELDS, SWITCHES, left_out, values_like
from frontend.pages.submit.run_secrets import ROWS, secret_rows
from frontend.pages.submit.submission import Like
from maat.api.commands import CommandOut
from maat.client import ApiError

FILLED = tuple(name for name in FIELDS if name != "secrets")


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(fill, api),
        output={
            "values": {name: Output(run_id(name), "value") for name in FILLED},
            "switches": {name: Output(run_id(name), "checked") for name in SWITCHES},
            "rows": Output(ROWS, "children"),
            "priorities": Output(run_id("priority"), "data"),
            "note": Output("submit-run-note", "children"),
            "usual": Output("submit-run-usual", "data"),
        },
        inputs={"like": Input("submit-like", "data")},
        state={
            "asked": State("submit-asked", "data"),
            "usual": State("submit-run-usual", "data"),
            "note": State("submit-run-note", "children"),
        },
    )


async def fill(
    api: Api, *, like: Like, asked: FormValues, usual: FormValues, note: object
) -> Changes:
    """Fill the form once, as the job of the address was declared; its values go before."""
    job_id = like["job"]
    if not job_id or note:
        return NOTHING
    try:
        async with api.visitor() as maat:
            job = await maat.job(job_id)
            command = await maat.job_command(job_id)
    except ApiError as error:
        words = f"There is no job {quoted(job_id)} that runs a command."
        absent = address_note([words], "/submit", "Submit without it")
        return {"note": absent if error.status == 404 else error_state(error)}
    except Failure as error:
        return {"note": error_state(error)}
    as_it_was = values_like(job, command)
    values = over(as_it_was, asked)
    return {
        "values": {name: values[name] for name in FILLED},
        "switches": {name: values[name] for name in SWITCHES},
        "priorities": priority_choices(values["priority"]),
        "usual": {**usual, **as_it_was},
        "rows": secret_rows(dict.fromkeys(command["secret_names"])),
        "note": _note(job["name"], command),
    }


def _note(name: str, command: CommandOut) -> Component:
    words = ["The form is filled as it was."]
    if secrets := command["secret_names"]:
        words.append(f"Secrets are never shown again: give the values of {', '.join(secrets)}.")
    if several := left_out(command):
        words.append(
            f"Left out, since they have several lines: {', '.join(several)}. "
            "maat submit --env takes them."
        )
    alert: Component = dmc.Alert(" ".join(words), title=f"As {name}", color="blue")
    return alert
