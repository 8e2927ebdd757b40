"""The submit form: what a job needs to say and no more, every error beside its field, and what to expect of the job before it is submitted.

The fields are in components/submit_fields.py, what to expect in components/submit_preview.py.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, anything
from frontend.api import Api, Failure
from frontend.components import submit_preview
from frontend.components.cards import card, error_state, page_title
from frontend.components.job_form import (
    FIELDS,
    LATENCY,
    body_of,
    capacity_of,
    meaningless,
    most_gpus,
    refused,
    still_wrong,
    types_of,
    unfinished,
    values_like,
)
from frontend.components.notices import notice
from frontend.components.submit_fields import (
    HIDDEN,
    SHAPED,
    SHOWN,
    box_id,
    error_id,
    field_id,
    job_fields,
    named_model,
)
from frontend.formatting import count, plural
from frontend.routing import in_browser, one
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.client import ApiError, calls


def layout(like: Any = None, remedy: Any = None, **_query: Any) -> html.Div:

    return html.Div(
        [
            page_title("Submit a job"),
            html.Div(
                [
                    card("Job", job_fields(replaces=bool(remedy)), className="span-5"),
                    submit_preview.preview_card(),
                ],
                className="columns",
            ),
            dcc.Store(id="submit-key", data=uuid4().hex),
            dcc.Store(id="submit-models", data=[]),
            dcc.Store(id="submit-capacity"),
            dcc.Store(id="submit-told"),
            dcc.Store(id="submit-like", data={"job": one(like), "remedy": one(remedy)}),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/submit",
        name="Submit",
        title="Submit",
        order=3,
        layout=layout,
        takes={"like": anything, "remedy": anything},
    )
    in_browser(app, "focusOn", Output("submit-problem", "id"), Input("submit-name", "id"))
    _register_offers(app, api)
    submit_preview.register(app, api)
    _register_submission(app, api)
    _register_filling(app, api)


def _register_offers(app: Dash, api: Api) -> None:
    @app.callback(
        Output("submit-models", "data"),
        Output("submit-capacity", "data"),
        Output("submit-model", "data"),
        Output("submit-model", "value"),
        Input("cluster-select", "value"),
        State("submit-model", "value"),
    )
    async def offer(cluster_id: str | None, chosen: str | None) -> tuple[Any, ...]:
        """The models that run on the cluster that the job goes to."""
        try:
            async with api.visitor() as maat:
                models = (await maat.send(calls.models()))["items"]
                known = cluster_id not in (None, NO_CLUSTER)
                capacity = (
                    capacity_of(await maat.send(calls.cluster_state(str(cluster_id))))
                    if known
                    else {}
                )
        except Failure:
            return (no_update,) * 4
        kept = [
            {
                name: model[name]
                for name in (
                    "name",
                    "initial_batch_size",
                    "max_batch_size",
                    "restart_seconds",
                    "gpu_types",
                )
            }
            for model in models
            if types_of(model, capacity)
        ]
        there = {model["name"] for model in kept}
        choices = [
            {"value": model["name"], "label": f"{model['title']} · {model['dataset']}"}
            for model in models
            if model["name"] in there
        ]
        return (
            kept,
            capacity,
            choices,
            chosen if chosen in there else choices[0]["value"] if choices else None,
        )

    @app.callback(
        Output("submit-gpu-types", "data"),
        Output("submit-gpu-types", "value"),
        Output("submit-batch-size", "placeholder"),
        Output("submit-max-batch-size", "placeholder"),
        Input("submit-model", "value"),
        Input("submit-models", "data"),
        Input("submit-capacity", "data"),
        Input("submit-workload-kind", "value"),
        State("submit-gpu-types", "value"),
    )
    async def suit(
        name: str | None, models: list[Any], capacity: Any, kind: str, chosen: list[str] | None
    ) -> tuple[Any, ...]:
        """What the chosen model can use of the cluster, and what holds where a batch size is left empty."""
        model = named_model(models, name)
        types = gpu_order(types_of(model, capacity))
        data = [
            {
                "value": each,
                "label": f"{each} ({plural(capacity[each], 'GPU')})" if capacity else each,
            }
            for each in types
        ]
        kept = [each for each in chosen or () if each in types]
        if model is None:
            return data, kept, "", ""
        own = (
            "requests"
            if kind == LATENCY
            else f"{count(model['initial_batch_size'])}, the model's own"
        )
        return data, kept if kept != chosen else no_update, own, count(model["max_batch_size"])

    @app.callback(
        *(Output(field_id(name), "max") for name in ("gpu_count", "min_gpus", "max_gpus")),
        Input("submit-model", "value"),
        Input("submit-gpu-types", "value"),
        State("submit-models", "data"),
        Input("submit-capacity", "data"),
    )
    async def limit(
        name: str | None, chosen: list[str] | None, models: list[Any], capacity: Any
    ) -> tuple[Any, ...]:
        """No more GPUs than the cluster has of one type."""
        return (most_gpus(named_model(models, name), chosen, capacity),) * 3

    @app.callback(
        *(Output(box_id(name), "style") for name in SHAPED),
        Input("submit-adaptivity", "value"),
        Input("submit-workload-kind", "value"),
    )
    async def shape(adaptivity: str, kind: str) -> tuple[Any, ...]:
        """Fields that mean nothing for this kind of job are not there."""
        empty = meaningless(adaptivity, kind)
        return tuple(HIDDEN if name in empty else SHOWN for name in SHAPED)


def _register_submission(app: Dash, api: Api) -> None:
    values = {name: State(field_id(name), "value") for name in FIELDS}

    @app.callback(
        output={
            "told": Output("submit-told", "data"),
            "problem": Output("submit-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": Output("notices", "sendNotifications", allow_duplicate=True),
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-button", "n_clicks")},
        state={
            "values": values,
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
    async def submit(
        clicks: int | None,
        values: dict[str, Any],
        preemptible: bool,
        cluster_id: str | None,
        models: list[Any],
        capacity: Any,
        like: dict[str, Any],
        replace: bool,
        key: str,
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "told": None,
            "problem": None,
            "go": no_update,
            "notices": no_update,
            "key": no_update,
        }
        if not clicks:
            return answer
        model = named_model(models, values["model"])
        if wrong := unfinished(values, model, capacity):
            return {**answer, "told": {"values": values, "errors": wrong}}
        own_batch = None if model is None else model["initial_batch_size"]
        body = body_of(values, preemptible=preemptible, cluster_id=cluster_id, own_batch=own_batch)
        try:
            async with api.visitor() as maat:
                job = await maat.send(calls.submit_job(body, idempotency_key=key))
                if like["job"] and like["remedy"] and replace:
                    await maat.cancel_job(like["job"])
        except Failure as error:
            problems = error.errors if isinstance(error, ApiError) else ()
            beside = refused(problems)
            elsewhere = (
                None
                if beside and len(beside) == len({problem.field for problem in problems})
                else error_state(error)
            )
            return {
                **answer,
                "told": {"values": values, "errors": beside},
                "problem": elsewhere,
                "key": uuid4().hex,
            }
        return {
            **answer,
            "go": f"/jobs/{job['id']}",
            "notices": notice(f"{job['name']} submitted", "The next round considers it."),
        }

    @app.callback(
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
    async def tell(
        told: dict[str, Any] | None, capacity: Any, values: dict[str, Any], models: list[Any]
    ) -> dict[str, Any]:
        """Nothing before the first press; from then on what is wrong, as long as it is."""
        wrong = (
            {}
            if told is None
            else still_wrong(values, told, named_model(models, values["model"]), capacity)
        )
        return {name: wrong.get(name, "") for name in FIELDS}


def _register_filling(app: Dash, api: Api) -> None:
    @app.callback(
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
    async def fill(models: list[Any], like: dict[str, Any], note: Any) -> dict[str, Any]:
        """The form as another job was declared, with what a remedy changes of it; once."""
        nothing: dict[str, Any] = {
            "values": dict.fromkeys(FIELDS, no_update),
            "preemptible": no_update,
            "note": no_update,
        }
        nothing["replace"] = no_update
        if not like["job"] or not models or note:
            return nothing
        try:
            async with api.visitor() as maat:
                job, told = await asyncio.gather(
                    maat.job(like["job"]), maat.send(calls.explanation(like["job"]))
                )
        except Failure as error:
            return {**nothing, "note": error_state(error)}
        remedy = next((each for each in told["remedies"] if each["code"] == like["remedy"]), None)
        words = (
            remedy["sentence"]
            if remedy
            else "The form is filled as it was."
            + (" What was proposed would no longer start it." if like["remedy"] else "")
        )
        return {
            "values": values_like(job, remedy["changes"] if remedy else {}),
            "preemptible": job["preemptible"],
            "note": dmc.Alert(words, title=f"As {job['name']}", color="blue"),
            "replace": SHOWN if remedy else HIDDEN,
        }
