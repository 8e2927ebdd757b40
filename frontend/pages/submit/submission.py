"""What the button of the submit form does: what is wrong beside its field, or on to the new job."""

from __future__ import annotations

from functools import partial
from typing import TypedDict
from uuid import uuid4

from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.callbacks import NOTICES, Changes, answer
from frontend.components.cards import error_state
from frontend.components.notices import notice
from frontend.forms import FormValues, Told
from frontend.pages.submit.fields import error_id, field_id
from frontend.pages.submit.model import (
    FIELDS,
    Capacity,
    Model,
    body_of,
    named_model,
    refused,
    still_wrong,
    unfinished,
)
from maat.client import ApiError, calls


class Like(TypedDict):
    """The job that the form was opened for, and the code of the remedy that fills it."""

    job: str | None
    remedy: str | None


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(submit, api),
        output={
            "told": Output("submit-told", "data"),
            "problem": Output("submit-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": NOTICES,
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-button", "n_clicks")},
        state={
            "values": {name: State(field_id(name), "value") for name in FIELDS},
            "preemptible": State("submit-preemptible", "checked"),
            "cluster_id": State("cluster-select", "value"),
            "models": State("submit-models", "data"),
            "capacity": State("submit-capacity", "data"),
            "like": State("submit-like", "data"),
            "replace": State("submit-replace", "checked"),
            "key": State("submit-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-button", "loading"), True, False)],
    )
    answer(
        app,
        tell,
        output={
            name: Output(error_id(name), "children" if name == "adaptivity" else "error")
            for name in FIELDS
        },
        inputs={
            "told": Input("submit-told", "data"),
            "capacity": Input("submit-capacity", "data"),
            "values": {name: Input(field_id(name), "value") for name in FIELDS},
        },
        state={"models": State("submit-models", "data")},
    )


async def submit(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    preemptible: bool,
    cluster_id: str | None,
    models: list[Model],
    capacity: Capacity | None,
    like: Like,
    replace: bool,
    key: str,
) -> Changes:
    """Submit the job, and cancel the one that it replaces."""
    unsaid = {"told": None, "problem": None}
    if not clicks:
        return unsaid
    model = named_model(models, values["model"])
    if unfinished(values, model, capacity):
        return {**unsaid, "told": {"values": values, "errors": {}}}
    own_batch = None if model is None else model["initial_batch_size"]
    body = body_of(values, preemptible=preemptible, cluster_id=cluster_id, own_batch=own_batch)
    try:
        async with api.visitor() as maat:
            job = await maat.send(calls.submit_job(body, idempotency_key=key))
            if like["job"] and like["remedy"] and replace:
                await maat.cancel_job(like["job"])
    except Failure as error:
        return {**_refusal(error, values), "key": uuid4().hex}
    return {
        **unsaid,
        "go": f"/jobs/{job['id']}",
        "notices": notice(f"{job['name']} submitted", "The next round considers it."),
    }


def _refusal(error: Exception, values: FormValues) -> Changes:
    """Return what is wrong beside its field, and above the form what belongs to no field."""
    problems = error.errors if isinstance(error, ApiError) else ()
    beside = refused(problems)
    all_placed = beside and len(beside) == len({problem.field for problem in problems})
    return {
        "told": {"values": values, "errors": beside},
        "problem": None if all_placed else error_state(error),
    }


async def tell(
    *, told: Told | None, capacity: Capacity | None, values: FormValues, models: list[Model]
) -> Changes:
    """Say what is wrong from the first press on, for as long as it is."""
    wrong = still_wrong(values, told, named_model(models, values["model"]), capacity)
    return {name: wrong.get(name, "") for name in FIELDS}
