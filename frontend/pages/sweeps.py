"""The form of a sensitivity sweep: a trace, a cluster, what is varied, seeds; and the sweeps there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.addresses import add_page
from frontend.api import Api, Failure
from frontend.components import conditions
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    link_button,
    page_title,
    scrolls,
)
from frontend.components.laboratory_form import (
    SEEDS_EXAMPLE,
    SEEDS_WRONG,
    LaboratoryForm,
    cluster_field,
    name_field,
    register_run,
    seeds_field,
)
from frontend.components.parameter_fields import (
    parameter_fields,
    parameters_of,
    place_of,
    register_parameters,
    register_placers,
)
from frontend.components.states import state_chip
from frontend.components.trace_fields import (
    missing_trace,
    register_trace_fields,
    trace_fields,
    traces_of,
)
from frontend.formatting import clock
from frontend.forms import parse_seeds
from frontend.routing import in_browser, submits
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

NOTHING = "nothing"
VARIED = (
    ("p", "Fairness power p", "-1, -0.5, 0.5, 1"),
    ("idle_penalty", "Idle penalty lambda", "1.1, 2, 4"),
    ("round_seconds", "Round duration (s)", "60, 120, 300"),
    ("arrival_rate", "Arrival rate, relative to the trace", "0.5, 1, 2"),
    ("jobs_per_hour", "Arrival rate of generated jobs (jobs/h)", "10, 20, 30"),
    ("profiling", "Profiling mode", "oracle, requested, bootstrap, no-profile"),
    ("rigid_share", "Share of rigid jobs", "0, 0.5, 1"),
    ("strong_scaling_share", "Share of strong-scaling jobs", "0, 0.5, 1"),
    ("locality_penalty", "Slowdown across nodes", "1, 1.5, 2"),
    ("cluster_size", "Cluster size and jobs, times", "1, 2, 4"),
    ("policy", "Policy", "sia, fifo, srtf"),
)
EXAMPLES = {name: example for name, _, example in VARIED}
# Field of a refusal -> field of the form.
PLACES = {
    name: name for name in ("name", "cluster", "jobs", "hours", "seeds", "policy", "placer")
} | conditions.PLACES
ERRORS = (
    "name",
    "cluster",
    "jobs",
    "hours",
    "seeds",
    "policy",
    "placer",
    "values1",
    "values2",
    *conditions.ERRORS,
)
FORM = (
    "name",
    "kind",
    "family",
    "jobs",
    "hours",
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


def layout(**_query: Any) -> html.Div:
    choices = [{"value": name, "label": title} for name, title, _ in VARIED]
    form = html.Div(
        [
            html.Div(id="sweeps-problem"),
            name_field("sweeps", "Sensitivity"),
            *trace_fields("sweeps", jobs=20, hours=1, seed=None),
            cluster_field("sweeps"),
            _row(
                _select("sweeps-policy", "Policy", [("sia", "Sia")]),
                dmc.Select(
                    id="sweeps-placer",
                    label="Placer",
                    placeholder="the policy's own",
                    data=[],
                    value=None,
                    clearable=True,
                ),
            ),
            conditions.fidelity_field("sweeps"),
            _row(
                dmc.Select(
                    id="sweeps-vary1", label="Vary", data=choices, value="p", allowDeselect=False
                ),
                dmc.TextInput(id="sweeps-values1", label="Values", value=EXAMPLES["p"]),
            ),
            _row(
                dmc.Select(
                    id="sweeps-vary2",
                    label="And, one line each",
                    data=[{"value": NOTHING, "label": "Nothing else"}, *choices],
                    value=NOTHING,
                    allowDeselect=False,
                ),
                dmc.TextInput(id="sweeps-values2", label="Values", value="", disabled=True),
            ),
            seeds_field("sweeps", SEEDS_EXAMPLE, says="Each draws its own generated trace."),
            parameter_fields("sweeps"),
            *conditions.conditions_fields("sweeps"),
            dmc.Group(
                [
                    dmc.Button("Run sweep", id="sweeps-button", n_clicks=0),
                    html.Span(id="sweeps-count", className="hint"),
                ],
                gap=12,
                mt=4,
            ),
        ],
        className="form-stack",
        **submits("sweeps-button"),
    )
    return html.Div(
        [
            page_title("Sweeps", link_button("Compare policies", "/simulate")),
            html.Div(
                [
                    card("Vary a setting", form, className="span-5"),
                    card("Sweeps", scrolls("sweeps-list", label="Sweeps"), className="span-7"),
                ],
                className="columns",
            ),
            dcc.Store(id="sweeps-key", data=uuid4().hex),
            dcc.Store(id="sweeps-examples", data=EXAMPLES),
        ]
    )


def _row(*fields: Any) -> html.Div:
    return html.Div(list(fields), className="form-row")


def _select(select_id: str, label: str, options: Sequence[tuple[str, str]]) -> dmc.Select:
    data = [{"value": value, "label": text} for value, text in options]
    return dmc.Select(
        id=select_id, label=label, data=data, value=options[0][0], allowDeselect=False
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__, path="/sweeps", name="Sweeps", title="Sweeps", order=6, layout=layout, takes={}
    )
    register_trace_fields(app, "sweeps")
    conditions.register_conditions(app, api, "sweeps", policies="sweeps-policy")
    register_parameters(app, api, "sweeps", policies="sweeps-policy", placers="sweeps-placer")
    register_placers(app, api, "sweeps", placers="sweeps-placer")

    for which in (
        "1",
        "2",
    ):  # in the browser: an answer from the service could come after the reader has typed values of his own
        in_browser(
            app,
            "exampleValues",
            Output(f"sweeps-values{which}", "value"),
            Output(f"sweeps-values{which}", "disabled"),
            Input(f"sweeps-vary{which}", "value"),
            State("sweeps-examples", "data"),
            prevent_initial_call=True,
        )

    @app.callback(
        Output("sweeps-count", "children"),
        Input("sweeps-values1", "value"),
        Input("sweeps-values2", "value"),
        Input("sweeps-vary2", "value"),
        Input("sweeps-seeds", "value"),
    )
    async def count(values1: str, values2: str, vary2: str, seeds: str) -> str:
        second = 1 if vary2 == NOTHING else len(parse_values(values2))
        points = len(parse_values(values1)) * second * len(parse_seeds(seeds) or [])
        return f"{points} simulations; those known already are not repeated" if points else ""

    @app.callback(Output("sweeps-list", "children"), Input("live", "data"))
    async def list_sweeps(_live: Any) -> Any:
        try:
            async with api.visitor() as maat:
                page = await maat.send(calls.sweeps(limit=20))
        except Failure as error:
            return error_state(error)
        return _table(page["items"])

    register_run(
        app,
        api,
        LaboratoryForm(
            prefix="sweeps",
            fields=FORM,
            errors=ERRORS,
            unfinished=unfinished,
            body=lambda form, texts, cluster_id: body_of(form, texts=texts, cluster_id=cluster_id),
            call=lambda body, key: calls.start_sweep(body, idempotency_key=key),
            place=place,
            address="/sweeps",
            empty_name="Give the sweep a name.",
        ),
    )


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


def unfinished(
    form: Mapping[str, Any], texts: Sequence[str] | None, cluster_id: str | None
) -> dict[str, str]:
    """What the form itself can see. All else the service checks."""
    wrong: dict[str, str] = {}
    if not parse_values(form["values1"]):
        wrong["values1"] = f"Give the values to try, such as {EXAMPLES[form['vary1']]}."
    if form["vary2"] != NOTHING and not parse_values(form["values2"]):
        wrong["values2"] = f"Give the values to try, such as {EXAMPLES[form['vary2']]}."
    if form["vary2"] == form["vary1"]:
        wrong["values2"] = "This is varied already. Choose another setting, or nothing else."
    if parse_seeds(form["seeds"]) is None:
        wrong["seeds"] = SEEDS_WRONG
    return (
        wrong | conditions.half_set(form) | missing_trace(form, texts=texts, cluster_id=cluster_id)
    )


def body_of(
    form: Mapping[str, Any], *, texts: Sequence[str] | None, cluster_id: str | None
) -> RawBody:
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
    typed = parameters_of(form["parameters"])
    if form["placer"]:
        body["placer"] = form["placer"]
        if of_placer := typed.get(f"placer:{form['placer']}"):
            body["placer_parameters"] = of_placer
    if "policy" not in varied:
        body["policy"] = form["policy"]
        if of_policy := typed.get(f"policy:{form['policy']}"):
            body["policy_parameters"] = of_policy
    return body


def place(problem: FieldProblem, body: RawBody) -> str | None:
    """Where in the form a refused field stands."""
    owners = {f"/{part}_parameters": f"{part}:{body.get(part)}" for part in ("policy", "placer")}
    if (parameter := place_of(problem, owners)) is not None:
        return parameter
    first, *rest = problem.pointer.strip("/").split("/")
    if problem.pointer == "/trace/text":
        return "csv"
    if first == "vary":
        return "values2" if rest and rest[0] == "1" else "values1"
    return (
        "reservations"
        if first == "reservations"
        else PLACES.get(rest[-1] if rest else first) or PLACES.get(first)
    )


def _table(sweeps: Sequence[Mapping[str, Any]]) -> Any:
    if not sweeps:
        return empty_state(
            "No sweep yet", "Choose what to vary at the left, then run: the result stays here."
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
                html.Td(" × ".join(axis["name"] for axis in sweep["axes"])),
                html.Td(f"{sweep['done']} of {sweep['total']}", className="number"),
                html.Td(clock(sweep["created_at"]), className="number"),
            ]
        )
        for sweep in sweeps
    ]
    return html.Table([head, html.Tbody(rows)], className="plain-table")
