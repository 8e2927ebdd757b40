"""What the button of the submit form does: what is wrong beside its field, or on to the new job."""

from __future__ import annotations

from functools import partial
from typing import Any, TypedDict
from uuid import uuid4

from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import refused_state
from frontend.components.next_round import next_round
from frontend.components.notices import submitted
from frontend.forms import FormValues, Told
from frontend.pages.submit.fields import error_id, field_id
from frontend.pages.submit.later import (
    indices_of,
    later_body,
    later_place,
    later_sources,
    of_job,
    refused_later,
    register_later,
    submit_all,
    unfinished_later,
)
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
from frontend.pages.submit.trying import tried
from maat.client import ApiError
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem


class Like(TypedDict):
    """The job that the form was opened for, and the code of the remedy that fills it."""

    job: str | None
    remedy: str | None


def register(app: Dash, api: Api) -> None:
    register_later(app, "submit", told="submit-told")
    state: dict[str, Any] = {
        "values": {name: State(field_id(name), "value") for name in FIELDS},
        "later": later_sources("submit", State),
        "preemptible": State("submit-preemptible", "checked"),
        "cluster_id": State("cluster-select", "value"),
        "models": State("submit-models", "data"),
        "capacity": State("submit-capacity", "data"),
    }
    answer(
        app,
        partial(submit, api),
        output={
            "told": Output("submit-told", "data"),
            "problem": Output("submit-problem", "children"),
            "open": Output("submit-later", "open"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": NOTICES,
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-button", "n_clicks")},
        state={
            **state,
            "like": State("submit-like", "data"),
            "replace": State("submit-replace", "checked"),
            "key": State("submit-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-button", "loading"), True, False)],
    )
    answer(
        app,
        partial(try_it, api),
        output={
            "told": Output("submit-told", "data", allow_duplicate=True),
            "problem": Output("submit-problem", "children", allow_duplicate=True),
            "open": Output("submit-later", "open", allow_duplicate=True),
            "tried": Output("submit-tried", "children"),
        },
        inputs={"clicks": Input("submit-try", "n_clicks")},
        state=state,
        prevent_initial_call=True,
        running=[(Output("submit-try", "loading"), True, False)],
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
    later: FormValues,
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
    wrong = _unfinished(values, later, models, capacity)
    if wrong is not None:
        return {**unsaid, **wrong}
    body = _body(values, models, preemptible=preemptible, cluster_id=cluster_id)
    try:
        async with api.visitor() as maat:
            made = await submit_all(maat, body, later, key=key)
            if like["job"] and like["remedy"] and replace:
                await maat.cancel_job(like["job"])
            considered = await next_round(maat, cluster_id, "it")
    except Failure as error:
        return {**_refusal(error, values, later), "key": uuid4().hex}
    return {
        **unsaid,
        "go": made.where,
        "notices": submitted(made.what, considered, made.warnings),
    }


async def try_it(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    later: FormValues,
    preemptible: bool,
    cluster_id: str | None,
    models: list[Model],
    capacity: Capacity | None,
) -> Changes:
    """Say what the submission would make, or what is wrong with it."""
    if not clicks:
        return NOTHING
    wrong = _unfinished(values, later, models, capacity)
    if wrong is not None:
        return {**wrong, "problem": None, "tried": None}
    body = _body(values, models, preemptible=preemptible, cluster_id=cluster_id)
    indices = indices_of(later["array"]) or [0]
    found = await tried(api, {**body, **later_body(later)}, jobs=len(indices))
    if isinstance(found, ApiError):
        return {**_refusal(found, values, later), "tried": None}
    return {"told": None, "problem": None, "tried": found}


def _unfinished(
    values: FormValues, later: FormValues, models: list[Model], capacity: Capacity | None
) -> Changes | None:
    """Return what to show of what is wrong in the form; None if nothing is."""
    beside = unfinished_later(later)
    if not beside and not unfinished(values, named_model(models, values["model"]), capacity):
        return None
    told = {"told": {"values": {**values, **later}, "errors": {}}}
    return {**told, "open": True} if beside else told


def _body(
    values: FormValues, models: list[Model], *, preemptible: bool, cluster_id: str | None
) -> RawBody:
    model = named_model(models, values["model"])
    own_batch = None if model is None else model["initial_batch_size"]
    return body_of(values, preemptible=preemptible, cluster_id=cluster_id, own_batch=own_batch)


def _refusal(error: Exception, values: FormValues, later: FormValues) -> Changes:
    """Return what is wrong beside its field, and above the form what belongs to no field."""
    problems = of_job(error.errors) if isinstance(error, ApiError) else []
    below = refused_later(problems)
    beside = {**refused(problems), **below}
    all_placed = beside and len(beside) == len({_name(problem) for problem in problems})
    return {
        "told": {"values": {**values, **later}, "errors": beside},
        "problem": None if all_placed else refused_state(error),
        **({"open": True} if below else {}),
    }


def _name(problem: FieldProblem) -> str:
    return later_place(problem) or problem.field


async def tell(
    *, told: Told | None, capacity: Capacity | None, values: FormValues, models: list[Model]
) -> Changes:
    """Say what is wrong from the first press on, for as long as it is."""
    wrong = still_wrong(values, told, named_model(models, values["model"]), capacity)
    return {name: wrong.get(name, "") for name in FIELDS}
