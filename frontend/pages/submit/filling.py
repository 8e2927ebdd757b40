"""The submit form filled as another job was declared, with what a remedy changes of it."""

from __future__ import annotations

import asyncio
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html

from frontend.addresses import address_note, quoted
from frontend.api import Api
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import error_state
from frontend.components.priority import priority_choices
from frontend.forms import FormValues
from frontend.pages.submit.address import over
from frontend.pages.submit.fields import SHOWN, field_id
from frontend.pages.submit.model import FIELDS, Model, values_like
from frontend.pages.submit.submission import Like
from maat.client import ApiError, Unreachable, calls

AS_IT_WAS = "The form is filled as it was."


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(fill, api),
        output={
            "values": {
                name: Output(field_id(name), "value", allow_duplicate=True) for name in FIELDS
            },
            "priorities": Output(field_id("priority"), "data"),
            "preemptible": Output("submit-preemptible", "checked"),
            "note": Output("submit-like-note", "children"),
            "replace": Output("submit-replace", "style"),
            "usual": Output("submit-usual", "data"),
        },
        inputs={"models": Input("submit-models", "data")},
        state={
            "like": State("submit-like", "data"),
            "asked": State("submit-asked", "data"),
            "usual": State("submit-usual", "data"),
            "note": State("submit-like-note", "children"),
        },
        prevent_initial_call=True,
    )


async def fill(
    api: Api,
    *,
    models: list[Model],
    like: Like,
    asked: FormValues,
    usual: FormValues,
    note: object,
) -> Changes:
    """Fill the form once, when its models have come; the values of the address go before."""
    job_id, code = like["job"], like["remedy"]
    if not models or note:
        return NOTHING
    if not job_id:
        words = f"The remedy {quoted(code or '')} is of a job: name it too, as like."
        return {"note": _not_filled(words)} if code else NOTHING
    try:
        async with api.visitor() as maat:
            job, told = await asyncio.gather(maat.job(job_id), maat.send(calls.explanation(job_id)))
    except ApiError as error:
        absent = _not_filled(f"There is no job {quoted(job_id)}.")
        return {"note": absent if error.status == 404 else error_state(error)}
    except Unreachable as error:
        return {"note": error_state(error)}
    if job["runs_command"]:
        return {"note": _not_filled(f"{job['name']} is a command: choose its cluster first.")}
    remedy = next((each for each in told["remedies"] if each["code"] == code), None)
    if remedy:
        words = remedy["sentence"]
    else:
        words = f"{AS_IT_WAS} There is no remedy {quoted(code)} for it now." if code else AS_IT_WAS
    as_it_was = values_like(job, remedy["changes"] if remedy else {})
    values = over(as_it_was, asked)
    return {
        "values": values,
        "priorities": priority_choices(values["priority"]),
        "preemptible": asked.get("preemptible", job["preemptible"]),
        "usual": {**usual, **as_it_was, "preemptible": job["preemptible"]},
        "note": dmc.Alert(words, title=f"As {job['name']}", color="blue"),
        "replace": SHOWN if remedy else HIDDEN,
    }


def _not_filled(sentence: str) -> html.Div:
    return address_note([sentence], "/submit", "Submit without it")
