"""The submit form filled as another job was declared, with what a remedy changes of it."""

from __future__ import annotations

import asyncio
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import error_state
from frontend.pages.submit.fields import HIDDEN, SHOWN, field_id
from frontend.pages.submit.model import FIELDS, Model, values_like
from frontend.pages.submit.submission import Like
from maat.client import calls

AS_IT_WAS = "The form is filled as it was."
NO_LONGER = "What was proposed would no longer start it."


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(fill, api),
        output={
            "values": {
                name: Output(field_id(name), "value", allow_duplicate=True) for name in FIELDS
            },
            "preemptible": Output("submit-preemptible", "checked"),
            "note": Output("submit-like-note", "children"),
            "replace": Output("submit-replace", "style"),
        },
        inputs={"models": Input("submit-models", "data")},
        state={"like": State("submit-like", "data"), "note": State("submit-like-note", "children")},
        prevent_initial_call=True,
    )


async def fill(api: Api, *, models: list[Model], like: Like, note: object) -> Changes:
    """Fill the form once, when its models have come."""
    job_id = like["job"]
    if not job_id or not models or note:
        return NOTHING
    try:
        async with api.visitor() as maat:
            job, told = await asyncio.gather(maat.job(job_id), maat.send(calls.explanation(job_id)))
    except Failure as error:
        return {"note": error_state(error)}
    remedy = next((each for each in told["remedies"] if each["code"] == like["remedy"]), None)
    if remedy:
        words = remedy["sentence"]
    else:
        words = f"{AS_IT_WAS} {NO_LONGER}" if like["remedy"] else AS_IT_WAS
    return {
        "values": values_like(job, remedy["changes"] if remedy else {}),
        "preemptible": job["preemptible"],
        "note": dmc.Alert(words, title=f"As {job['name']}", color="blue"),
        "replace": SHOWN if remedy else HIDDEN,
    }
