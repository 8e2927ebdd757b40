"""What the page's forms and its list do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import uuid4

from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, Sources, answer, as_inputs
from frontend.components.cards import empty_state, error_state
from frontend.components.laboratory_form import UNFINISHED
from frontend.components.next_step import goes_to
from frontend.components.states import state_chip
from frontend.formatting import clock
from frontend.forms import FormValues, Told, errors_by_field, still_wrong
from frontend.loading import loaded
from frontend.pages.experiments.forms import AUTOSCALING, CATALOG, KINDS, TRAINED, ExperimentForm
from frontend.pages.experiments.layout import shown_parts
from maat.api.experiments import ExperimentOut
from maat.client import ApiError, calls

Choices = list[dict[str, str]]
WITHOUT_AN_ERROR = ("trained", "family")  # a choice that is always one of those there are
FOLDED = frozenset({"upper", "lower", "window", "give_back_below", "profiles", "fidelity"})


def register_list(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(list_experiments, api),
        output={"table": Output("experiments-list", "children")},
        inputs={"_live": Input("live", "data")},
    )
    answer(
        app,
        show_form,
        output={kind: Output(f"experiments-{kind}", "style") for kind, _ in KINDS},
        inputs={"chosen": Input("experiments-kind", "value")},
        prevent_initial_call=True,
    )
    answer(
        app,
        show_trained,
        output={
            part: Output(f"{AUTOSCALING}-of-{part}", "style")
            for part in (*(name for name, _ in TRAINED), "workload")
        },
        inputs={"trained": Input(f"{AUTOSCALING}-trained", "value")},
        prevent_initial_call=True,
    )


def register_form(app: Dash, api: Api, form: ExperimentForm) -> None:
    prefix = form.prefix
    state: dict[str, State | Sources] = {
        "values": {name: State(f"{prefix}-{name}", "value") for name in form.fields}
    }
    answer(
        app,
        partial(offer, api, form),
        output={name: Output(f"{prefix}-{name}", "data") for name in form.offered},
        inputs={"_key": Input(f"{prefix}-key", "data")},
    )
    answer(
        app,
        partial(run, api, form),
        output={
            "told": Output(f"{prefix}-told", "data"),
            "open": Output(f"{prefix}-more", "open"),
            "problem": Output(f"{prefix}-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "key": Output(f"{prefix}-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input(f"{prefix}-button", "n_clicks")},
        state={**state, "key": State(f"{prefix}-key", "data")},
        prevent_initial_call=True,
        running=[(Output(f"{prefix}-button", "loading"), True, False)],
    )
    answer(
        app,
        partial(tell, form),
        output={
            name: Output(f"{prefix}-{name}", "error")
            for name in form.fields
            if name not in WITHOUT_AN_ERROR
        },
        inputs={"told": Input(f"{prefix}-told", "data"), **as_inputs(state)},
        prevent_initial_call=True,
    )


async def show_form(*, chosen: str) -> Changes:
    return {kind: {} if kind == chosen else HIDDEN for kind, _ in KINDS}


async def show_trained(*, trained: str) -> Changes:
    return shown_parts(trained)


async def offer(api: Api, form: ExperimentForm, *, _key: str) -> Changes:
    """Offer models, policies, fidelities, and uploaded profiles and traces, as far as they come."""
    async with api.visitor() as maat:
        models, policies, presets, profiles, traces = await asyncio.gather(
            loaded(maat.send(calls.models())),
            loaded(maat.send(calls.policies())),
            loaded(maat.send(calls.fidelities())),
            loaded(maat.send(calls.measurements(kind="profiles", limit=100))),
            loaded(maat.send(calls.measurements(kind="trace", limit=100))),
        )
    found: dict[str, Choices] = {}
    if models.answer:
        found["model"] = [_choice(one["name"], one["name"]) for one in models.answer["items"]]
    if policies.answer:
        found["policy"] = [_choice(one["name"], one["title"]) for one in policies.answer["items"]]
    if presets.answer:
        found["fidelity"] = [_choice(one["name"], one["name"]) for one in presets.answer["items"]]
    if profiles.answer:
        uploaded = [_choice(one["name"], one["name"]) for one in profiles.answer["items"]]
        found["profiles"] = [_choice(CATALOG, "The catalog's"), *uploaded]
        measured = {
            model
            for one in profiles.answer["items"]
            for covered in one["covers"].values()
            for model in covered
        }
        known = {one["value"] for one in found.get("model", [])}
        found["model"] = [
            *found.get("model", []),
            *(_choice(name, f"{name} (uploaded profiles)") for name in sorted(measured - known)),
        ]
    if traces.answer:
        found["uploaded"] = [_choice(one["name"], one["name"]) for one in traces.answer["items"]]
    return {name: choices for name, choices in found.items() if name in form.offered}


def _choice(value: str, label: str) -> dict[str, str]:
    return {"value": value, "label": label}


async def run(
    api: Api, form: ExperimentForm, *, clicks: int | None, values: FormValues, key: str
) -> Changes:
    """Begin what the form asks for and go to its page, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    seen = form.unfinished(values)
    try:
        async with api.visitor() as maat:
            body = form.body(values) | (UNFINISHED if seen else {})
            begun = await maat.send(form.call(body, key))
    except Failure as error:
        beside, problem = errors_by_field(
            error, form.place, empty_name="Give the experiment a name."
        )
        if seen and isinstance(error, ApiError) and error.errors:
            problem = None
        refused = {field: words for field, words in beside.items() if field not in seen}
        opened = {"open": True} if FOLDED & {*refused, *seen} else {}
        told = Told(values=values, errors=refused)
        return {**opened, "told": told, "problem": problem, "key": uuid4().hex}
    return {"told": None, "problem": None, "go": f"/experiments/{begun['id']}"}


async def tell(form: ExperimentForm, *, told: Told | None, values: FormValues) -> Changes:
    """Say what is wrong from the first press on, for as long as it is."""
    wrong = still_wrong(values, told, form.unfinished(values))
    return {name: wrong.get(name, "") for name in form.fields if name not in WITHOUT_AN_ERROR}


async def list_experiments(api: Api, *, _live: object) -> Changes:
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.experiments(limit=20))
    except Failure as error:
        return {"table": error_state(error)}
    return {"table": table(page["items"])}


def table(experiments: Sequence[ExperimentOut]) -> Component:
    if not experiments:
        return empty_state(
            "No experiment yet",
            "Ask at the left what renting nodes as they are worth it would cost, or how long a "
            "search takes: the answer stays here.",
            action=goes_to("Describe an experiment", "autoscaling-name"),
        )
    kinds: Mapping[str, str] = dict(KINDS)
    heads = (("Experiment", ""), ("State", ""), ("Kind", ""), ("Created (UTC)", "number"))
    rows = [
        html.Tr(
            [
                html.Td(dcc.Link(one["name"] or one["id"], href=f"/experiments/{one['id']}")),
                html.Td(state_chip(one["state"])),
                html.Td(one["unreadable"] or kinds[one["kind"]]),
                html.Td(clock(one["created_at"]), className="number"),
            ]
        )
        for one in experiments
    ]
    head = html.Thead(html.Tr([html.Th(text, className=of) for text, of in heads]))
    return html.Table([head, html.Tbody(rows)], className="plain-table")
