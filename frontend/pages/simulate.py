"""The form that compares policies on a trace and a cluster, and the list of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice, product

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, counting
from frontend.api import Api, Failure
from frontend.attributes import submits
from frontend.callbacks import Changes, answer
from frontend.components import conditions
from frontend.components.cards import card, empty_state, error_state, page_title, scrolls, skeleton
from frontend.components.laboratory_address import LaboratoryAddress
from frontend.components.laboratory_form import (
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
    Chosen,
    about_policy,
    parameter_fields,
    parameters_of,
    place_of,
    register_parameters,
)
from frontend.components.replay import (
    MOST_HOURS,
    OF_THE_LIVE_CLUSTER,
    as_live,
    fill,
    live_settings,
)
from frontend.components.states import state_chip
from frontend.components.trace_fields import (
    MAX_TRACES,
    missing_trace,
    register_trace_fields,
    trace_fields,
    traces_of,
)
from frontend.formatting import clock, plural
from frontend.forms import FormValues, parse_seeds
from frontend.routing import QueryValue, query_value
from frontend.visitors import with_right
from maat.api.laboratory import use_words
from maat.api.simulation_answers import SimulationOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

is_hours = counting("window of hours", MOST_HOURS)
DEFAULT_POLICIES = ("sia", "fifo", "srtf")
MAX_RUNS = 200
# Field of a refusal -> field of the form.
PLACES = (
    {
        name: name
        for name in ("name", "cluster", "jobs", "hours", "xxl_share", "seed", "seeds", "fidelity")
    }
    | {"policy": "policies", "placer": "placers", "runs": "seeds", "since_seconds_ago": "window"}
    | {"measurement": "uploaded"}
    | conditions.PLACES
)
ERRORS = (
    "window",
    "uploaded",
    "name",
    "cluster",
    "jobs",
    "hours",
    "xxl_share",
    "seed",
    "draws",
    "policies",
    "placers",
    "seeds",
    "fidelity",
    *conditions.ERRORS,
)
FIELDS = (
    "window",
    "live",
    "name",
    "kind",
    "uploaded",
    "family",
    "jobs",
    "hours",
    "xxl_share",
    "seed",
    "draws",
    "cluster",
    "policies",
    "placers",
    "seeds",
    "fidelity",
)
ADDRESS = LaboratoryAddress(
    prefix="simulate",
    form=tuple(name for name in FIELDS if name != "live"),
    lists=frozenset({"policies", "placers"}),
    offered=("uploaded", "policies", "placers", "fidelity"),
)


def layout(replay: QueryValue = None, cluster: QueryValue = None, **query: QueryValue) -> html.Div:
    """`replay`: hours of the cluster's past that the form opens with. `query`: its values."""
    text = query_value(replay) or ""
    hours = int(text) if is_hours(text) is None else None
    form, asked = _form(hours), ADDRESS.asked_of(query)
    usual = ADDRESS.values_of(form)
    ADDRESS.fill_in(form, asked)
    kept = {
        "cluster": query_value(cluster),
        "fields": [name for name in ADDRESS.names if name in asked],
    }
    simulations = scrolls("simulate-list", skeleton(120), label="Simulations")
    return html.Div(
        [
            page_title("Simulate"),
            html.Div(
                [
                    card("Compare policies", form, className="span-5"),
                    card("Simulations", simulations, className="span-7"),
                ],
                className="columns",
            ),
            *form_stores("simulate"),
            *ADDRESS.parts(usual, asked),
            # A replay of the cluster that the address names leaves what the address says.
            dcc.Store(id="simulate-asked", data=kept),
            dcc.Store(id="simulate-replayed-hours", data=hours),
        ]
    )


def _form(replayed_hours: int | None) -> html.Div:
    policies = dmc.MultiSelect(
        id="simulate-policies",
        label="Policies to compare",
        data=list(DEFAULT_POLICIES),
        value=list(DEFAULT_POLICIES),
        searchable=True,
        withAsterisk=True,
    )
    placers = dmc.MultiSelect(
        id="simulate-placers",
        label="Placers, each with every policy",
        placeholder="the one that suits each policy",
        data=[],
        value=[],
        clearable=True,
        searchable=True,
    )
    seeds = [seeds_field("simulate", "0"), conditions.fidelity_field("simulate")]
    button = [
        with_right(dmc.Button("Run simulation", id="simulate-button", n_clicks=0)),
        html.Span(id="simulate-runs", className="hint"),
    ]
    return html.Div(
        [
            html.Div(id="simulate-unknown"),
            html.Div(id="simulate-problem"),
            name_field("simulate", "Policy comparison"),
            *trace_fields(
                "simulate", jobs=40, hours=4, seed=1, several=True, replayed_hours=replayed_hours
            ),
            dcc.Input(id="simulate-live", type="hidden", value=""),
            cluster_field("simulate"),
            policies,
            placers,
            html.Div(seeds, className="form-row"),
            conditions.fidelity_words("simulate"),
            parameter_fields("simulate"),
            *conditions.conditions_fields("simulate"),
            dmc.Group(button, gap=12, mt=4),
        ],
        className="form-stack",
        **submits("simulate-button"),
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/simulate",
        name="Simulate",
        title="Simulate",
        order=6,
        layout=layout,
        takes={"replay": is_hours, **ADDRESS.takes},
    )
    register_trace_fields(app, api, "simulate")
    answer(
        app,
        partial(fill, api),
        output={
            **{
                name: Output(ADDRESS.fields[name], "value", allow_duplicate=True)
                for name in ("name", "gpus", "policies")
            },
            "live": Output("simulate-live", "value"),
            "says": Output("simulate-replay-says", "children"),
        },
        inputs={
            "hours": Input("simulate-replayed-hours", "data"),
            "cluster_id": Input("cluster-select", "value"),
        },
        state={"kept": State("simulate-asked", "data")},
        prevent_initial_call="initial_duplicate",
    )
    ADDRESS.register(app)
    conditions.register_conditions(app, api, "simulate", policies="policies", placers="placers")
    register_parameters(
        app, api, "simulate", policies="simulate-policies", placers="simulate-placers"
    )
    counted = ("kind", "draws", "policies", "placers", "seeds")
    answer(
        app,
        count_runs,
        output={"words": Output("simulate-runs", "children")},
        inputs={
            "form": {name: Input(f"simulate-{name}", "value") for name in counted},
            "files": Input("simulate-files", "data"),
        },
    )
    answer(
        app,
        partial(list_simulations, api),
        output={"table": Output("simulate-list", "children")},
        inputs={"_live": Input("live", "data")},
    )
    register_run(app, api, FORM)


async def count_runs(*, form: FormValues, files: list[str]) -> Changes:
    """Say how many runs the form asks for."""
    if parse_seeds(form["seeds"]) is None:
        return {"words": ""}
    return {"words": plural(count_of(form, files), "run")}


async def list_simulations(api: Api, *, _live: object) -> Changes:
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.simulations(limit=20))
            uses = await maat.send(calls.laboratory_use())
    except Failure as error:
        return {"table": error_state(error)}
    used = dmc.Text(use_words(uses["items"][0]), size="sm", c="dimmed")  # the visitor's own tenant
    return {"table": html.Div([_table(page["items"]), used])}


def unfinished(form: FormValues, files: Sequence[str], cluster_id: str | None) -> dict[str, str]:
    """Return what the form itself can see to be wrong, by field; the service checks the rest."""
    wrong: dict[str, str] = {}
    seeds = parse_seeds(form["seeds"])
    if not form["policies"]:
        wrong["policies"] = "Choose at least one policy."
    if not form["fidelity"]:
        wrong["fidelity"] = "Choose a fidelity."
    for policy in conditions.tuned_by_policy(form):
        if policy not in (form["policies"] or ()):
            wrong["tuned_by_policy"] = (
                f"{policy} is not compared: choose it above, or leave it out."
            )
    if seeds is None:
        wrong["seeds"] = SEEDS_WRONG
    elif (count := count_of(form, files)) > MAX_RUNS:
        wrong["seeds"] = (
            f"That is {count} runs. Choose fewer policies, placers, traces or seeds: "
            f"at most {MAX_RUNS} runs."
        )
    if form["kind"] == "generated" and not (
        isinstance(form["draws"], int) and 1 <= form["draws"] <= MAX_TRACES
    ):
        wrong["draws"] = f"Give a whole number from 1 to {MAX_TRACES}."
    return (
        wrong
        | conditions.incomplete_fields(form)
        | missing_trace(form, files=files, cluster_id=cluster_id)
    )


def count_of(form: FormValues, files: Sequence[str]) -> int:
    """Policies x placers x seeds x traces."""
    draws = form["draws"] if isinstance(form["draws"], int) else 1
    traces = {"generated": draws, "csv": len(files)}.get(form["kind"], 1)
    return (
        len(form["policies"] or ())
        * max(len(form["placers"] or ()), 1)
        * len(parse_seeds(form["seeds"]) or ())
        * traces
    )


def body_of(form: FormValues, *, texts: Sequence[str] | None, cluster_id: str | None) -> RawBody:
    """The form as the API's body: one run per policy, placer and seed, on every trace.

    Of an unfinished form: a body in which what the form has seen already is not wrong again.
    """
    given, live = parameters_of(form["parameters"]), live_settings(form)
    tuned = conditions.tuned_by_policy(form)
    placers = [{"placer": placer} for placer in form["placers"] or ()] or [{}]
    combined = product(form["policies"], placers, parse_seeds(form["seeds"]) or ())
    runs: list[RawBody] = [
        as_live(
            {
                "policy": policy,
                "seed": seed,
                **({"tuned": tuned[policy]} if policy in tuned else {}),
                **placer,
                **_parameters(given, policy, placer.get("placer")),
            },
            live,
        )
        for policy, placer, seed in islice(combined, MAX_RUNS)
    ]
    of_live = {name: live[name] for name in OF_THE_LIVE_CLUSTER if live.get(name)}
    return {
        "name": form["name"] or "",
        "traces": traces_of(form, texts=texts, cluster_id=cluster_id),
        "cluster": form["cluster"] or "",
        "runs": runs or [{}],
        "fidelity": form["fidelity"],
        **of_live,
        **conditions.conditions_of(form),
    }


def _parameters(given: Chosen, policy: str, placer: str | None) -> RawBody:
    """What was typed for a run's policy, and for its placer where one was chosen."""
    of_placer = given.get(f"placer:{placer}")
    return about_policy(given.get(f"policy:{policy}", {})) | (
        {"placer_parameters": of_placer} if of_placer else {}
    )


def place(problem: FieldProblem, body: RawBody) -> str | None:
    """Return where the form shows a refused field; problems in a CSV show beside the file."""
    if problem.pointer.startswith("/traces/") and problem.pointer.endswith("/text"):
        kinds = {trace["kind"] for trace in body.get("traces", ())}
        return "uploaded" if "uploaded" in kinds else "csv"
    owners = {
        f"/runs/{i}/policy_parameters": f"policy:{run.get('policy')}"
        for i, run in enumerate(body["runs"])
    }
    owners |= {
        f"/runs/{i}/placer_parameters": f"placer:{run.get('placer')}"
        for i, run in enumerate(body["runs"])
    }
    if (parameter := place_of(problem, owners)) is not None:
        return parameter
    return (
        "reservations"
        if problem.pointer.startswith("/reservations")
        else PLACES.get(problem.pointer.rsplit("/", 1)[-1])
    )


FORM: LaboratoryForm[SimulationOut] = LaboratoryForm(
    prefix="simulate",
    fields=FIELDS,
    errors=ERRORS,
    unfinished=unfinished,
    body=lambda form, texts, cluster_id: body_of(form, texts=texts, cluster_id=cluster_id),
    call=lambda body, key: calls.simulate(body, idempotency_key=key),
    place=place,
    address="/simulations",
    empty_name="Give the simulation a name.",
)


def _table(simulations: Sequence[SimulationOut]) -> Component:
    if not simulations:
        return empty_state(
            "No simulation yet",
            "Choose a trace and policies at the left, then run: the comparison stays here.",
            action=goes_to("Describe a comparison", "simulate-name"),
        )
    head = html.Thead(
        html.Tr(
            [
                html.Th("Simulation"),
                html.Th("State"),
                html.Th("Policies"),
                html.Th("Runs", className="number"),
                html.Th("Created (UTC)", className="number"),
            ]
        )
    )
    rows = []
    for simulation in simulations:
        runs = simulation["runs"]
        policies = list(dict.fromkeys(run["policy"] for run in runs))
        rows.append(
            html.Tr(
                [
                    html.Td(
                        dcc.Link(
                            simulation["name"] or simulation["id"],
                            href=f"/simulations/{simulation['id']}",
                        )
                    ),
                    html.Td(state_chip(simulation["state"])),
                    html.Td(
                        simulation["unreadable"]
                        or ", ".join(policies[:4]) + (" …" if len(policies) > 4 else "")
                    ),
                    html.Td(str(len(runs)), className="number"),
                    html.Td(clock(simulation["created_at"]), className="number"),
                ]
            )
        )
    return html.Table([head, html.Tbody(rows)], className="plain-table")
