"""The form of a sensitivity sweep, and the list of sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite

import dash_mantine_components as dmc
from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, among
from frontend.api import Api, Failure
from frontend.attributes import submits
from frontend.callbacks import Changes, answer
from frontend.components import conditions
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    link_button,
    page_title,
    scrolls,
    skeleton,
)
from frontend.components.laboratory_address import LaboratoryAddress
from frontend.components.laboratory_form import (
    SEEDS_EXAMPLE,
    SEEDS_WRONG,
    LaboratoryForm,
    cluster_field,
    form_stores,
    name_field,
    register_run,
    seeds_field,
)
from frontend.components.next_step import goes_to
from frontend.components.parameter_fields import (
    about_policy,
    parameter_fields,
    parameters_of,
    place_of,
    register_parameters,
)
from frontend.components.states import state_chip
from frontend.components.trace_fields import (
    missing_trace,
    register_trace_fields,
    trace_fields,
    traces_of,
)
from frontend.formatting import clock
from frontend.forms import FormValues, parse_seeds
from frontend.pages.sweeps_varied import (
    EXAMPLES,
    NOTHING,
    choice_of,
    register_settings,
    row_of,
    varied_fields,
)
from frontend.routing import QueryValue
from frontend.visitors import with_right
from maat.api.sweeps import SweepDetail, SweepOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

# Field of a refusal -> field of the form.
PLACES = {
    name: name
    for name in (
        *("name", "cluster", "jobs", "hours", "xxl_share", "seeds"),
        *("policy", "placer", "fidelity"),
    )
} | {"measurement": "uploaded", **conditions.PLACES}
ERRORS = (
    "window",
    "uploaded",
    "name",
    "cluster",
    "jobs",
    "hours",
    "xxl_share",
    "seeds",
    "policy",
    "placer",
    "fidelity",
    "vary1",
    "values1",
    "vary2",
    "values2",
    *conditions.ERRORS,
)
FIELDS = (
    "window",
    "name",
    "kind",
    "uploaded",
    "family",
    "jobs",
    "hours",
    "xxl_share",
    "cluster",
    "policy",
    "placer",
    "fidelity",
    "vary1",
    "values1",
    "vary2",
    "values2",
    "seeds",
)
ADDRESS = LaboratoryAddress(
    prefix="sweeps",
    form=FIELDS,
    offered=("uploaded", "policy", "placer", "fidelity"),
    choices={
        "vary1": among("setting", EXAMPLES),
        "vary2": among("setting", (NOTHING, *EXAMPLES)),
    },
)


def layout(**query: QueryValue) -> html.Div:
    """`query`: values of the form."""
    form, asked = _form(), ADDRESS.asked_of(query)
    usual = ADDRESS.values_of(form)
    ADDRESS.fill_in(form, _with_examples(asked))
    form["sweeps-values2"].disabled = form["sweeps-vary2"].value == NOTHING
    sweeps = scrolls("sweeps-list", skeleton(120), label="Sweeps")
    return html.Div(
        [
            page_title("Sweeps", link_button("Compare policies", "/simulate")),
            html.Div(
                [
                    card("Vary a setting", form, className="span-5"),
                    card("Sweeps", sweeps, className="span-7"),
                ],
                className="columns",
            ),
            *form_stores("sweeps"),
            *ADDRESS.parts(usual, asked),
            dcc.Store(id="sweeps-examples", data=EXAMPLES),
        ]
    )


def _with_examples(asked: FormValues) -> FormValues:
    """Add the values to try of each setting of an address that gives none, as a choice would."""
    examples = {
        f"values{which}": EXAMPLES.get(asked[f"vary{which}"], "")
        for which in ("1", "2")
        if f"vary{which}" in asked
    }
    return {**examples, **asked}


def _form() -> html.Div:
    placer = dmc.Select(
        id="sweeps-placer",
        label="Placer",
        placeholder="the policy's own",
        data=[],
        value=None,
        clearable=True,
    )
    button = [
        with_right(dmc.Button("Run sweep", id="sweeps-button", n_clicks=0)),
        html.Span(id="sweeps-count", className="hint"),
    ]
    return html.Div(
        [
            html.Div(id="sweeps-unknown"),
            html.Div(id="sweeps-problem"),
            name_field("sweeps", "Sensitivity"),
            *trace_fields("sweeps", jobs=20, hours=1, seed=None),
            cluster_field("sweeps"),
            row_of(choice_of("sweeps-policy", "Policy", [("sia", "Sia")]), placer),
            conditions.fidelity_field("sweeps"),
            conditions.fidelity_words("sweeps"),
            *varied_fields(),
            seeds_field("sweeps", SEEDS_EXAMPLE, says="Each draws its own generated trace."),
            parameter_fields("sweeps"),
            *conditions.conditions_fields("sweeps"),
            dmc.Group(button, gap=12, mt=4),
        ],
        className="form-stack",
        **submits("sweeps-button"),
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/sweeps",
        name="Sweeps",
        title="Sweeps",
        order=7,
        layout=layout,
        takes=ADDRESS.takes,
    )
    ADDRESS.register(app)
    register_trace_fields(app, api, "sweeps")
    conditions.register_conditions(app, api, "sweeps", policies="policy", placers="placer")
    register_settings(app, api)
    register_parameters(app, api, "sweeps", policies="sweeps-policy", placers="sweeps-placer")
    answer(
        app,
        count_points,
        output={"words": Output("sweeps-count", "children")},
        inputs={
            name: Input(f"sweeps-{name}", "value")
            for name in ("values1", "values2", "vary2", "seeds")
        },
    )
    answer(
        app,
        partial(list_sweeps, api),
        output={"table": Output("sweeps-list", "children")},
        inputs={"_live": Input("live", "data")},
    )
    register_run(app, api, FORM)


async def count_points(*, values1: str, values2: str, vary2: str, seeds: str) -> Changes:
    """Say how many simulations the form asks for."""
    second = 1 if vary2 == NOTHING else len(parse_values(values2))
    points = len(parse_values(values1)) * second * len(parse_seeds(seeds) or [])
    words = f"{points} simulations; those known already are not repeated"
    return {"words": words if points else ""}


async def list_sweeps(api: Api, *, _live: object) -> Changes:
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.sweeps(limit=20))
    except Failure as error:
        return {"table": error_state(error)}
    return {"table": _table(page["items"])}


def parse_values(text: str | None) -> list[float | str]:
    """`-1, 0.5` as numbers, words as words: which of them the setting takes, the service says."""
    return [_value(part.strip()) for part in (text or "").split(",") if part.strip()]


def _value(text: str) -> float | str:
    """What is no number that JSON can carry stays the text that it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return value if isfinite(value) else text


def unfinished(form: FormValues, files: Sequence[str], cluster_id: str | None) -> dict[str, str]:
    """What the form itself can see. All else the service checks."""
    wrong: dict[str, str] = {}
    wrong |= {name: f"Choose a {name}." for name in ("policy", "fidelity") if not form[name]}
    if not parse_values(form["values1"]):
        wrong["values1"] = f"Give the values to try, such as {EXAMPLES[form['vary1']]}."
    if form["vary2"] != NOTHING and not parse_values(form["values2"]):
        wrong["values2"] = f"Give the values to try, such as {EXAMPLES[form['vary2']]}."
    if form["vary2"] == form["vary1"]:
        wrong["vary2"] = "This is varied already. Choose another setting, or nothing else."
    if parse_seeds(form["seeds"]) is None:
        wrong["seeds"] = SEEDS_WRONG
    return (
        wrong
        | conditions.incomplete_fields(form)
        | missing_trace(form, files=files, cluster_id=cluster_id)
    )


def body_of(form: FormValues, *, texts: Sequence[str] | None, cluster_id: str | None) -> RawBody:
    """The form as the API's body."""
    vary: list[RawBody] = [{"name": form["vary1"], "values": parse_values(form["values1"])}]
    if form["vary2"] != NOTHING:
        vary.append({"name": form["vary2"], "values": parse_values(form["values2"])})
    varied = {one["name"] for one in vary}
    trace = traces_of(form, texts=texts, cluster_id=cluster_id)[0]
    body: RawBody = {
        "name": form["name"] or "",
        "trace": {
            name: value
            for name, value in trace.items()
            if name != "jobs" or "jobs_per_hour" not in varied
        },
        "cluster": form["cluster"] or "",
        "fidelity": form["fidelity"],
        "vary": vary,
        "seeds": parse_seeds(form["seeds"]) or [],
        **conditions.conditions_of(form),  # what is left out has its default
    }
    if tuned := conditions.tuned_by_policy(form):
        body["tuned_by_policy"] = dict(tuned)
    typed = parameters_of(form["parameters"])
    if form["placer"]:
        body["placer"] = form["placer"]
        if of_placer := typed.get(f"placer:{form['placer']}"):
            body["placer_parameters"] = of_placer
    if "policy" not in varied:
        body["policy"] = form["policy"]
        body |= about_policy(typed.get(f"policy:{form['policy']}", {}))
    return body


def place(problem: FieldProblem, body: RawBody) -> str | None:
    """Where in the form a refused field stands."""
    owners = {f"/{part}_parameters": f"{part}:{body.get(part)}" for part in ("policy", "placer")}
    if (parameter := place_of(problem, owners)) is not None:
        return parameter
    first, *rest = problem.pointer.strip("/").split("/")
    if problem.pointer == "/trace/text":
        return "uploaded" if body["trace"]["kind"] == "uploaded" else "csv"
    if first == "vary":
        return "values2" if rest and rest[0] == "1" else "values1"
    return (
        "reservations"
        if first == "reservations"
        else PLACES.get(rest[-1] if rest else first) or PLACES.get(first)
    )


FORM: LaboratoryForm[SweepDetail] = LaboratoryForm(
    prefix="sweeps",
    fields=FIELDS,
    errors=ERRORS,
    unfinished=unfinished,
    body=lambda form, texts, cluster_id: body_of(form, texts=texts, cluster_id=cluster_id),
    call=lambda body, key: calls.start_sweep(body, idempotency_key=key),
    place=place,
    address="/sweeps",
    empty_name="Give the sweep a name.",
)


def _table(sweeps: Sequence[SweepOut]) -> Component:
    if not sweeps:
        return empty_state(
            "No sweep yet",
            "Choose what to vary at the left, then run: the result stays here.",
            action=goes_to("Describe a sweep", "sweeps-name"),
        )
    heads = ("Sweep", "State", "Varied")
    head = html.Thead(
        html.Tr(
            [
                *map(html.Th, heads),
                html.Th("Points", className="number"),
                html.Th("Created (UTC)", className="number"),
            ]
        )
    )
    rows = [
        html.Tr(
            [
                html.Td(dcc.Link(sweep["name"] or sweep["id"], href=f"/sweeps/{sweep['id']}")),
                html.Td(state_chip(sweep["state"])),
                html.Td(sweep["unreadable"] or " × ".join(axis["name"] for axis in sweep["axes"])),
                html.Td(f"{sweep['done']} of {sweep['total']}", className="number"),
                html.Td(clock(sweep["created_at"]), className="number"),
            ]
        )
        for sweep in sweeps
    ]
    return html.Table([head, html.Tbody(rows)], className="plain-table")
