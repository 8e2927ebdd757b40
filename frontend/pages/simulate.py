"""The laboratory's form: a trace, a cluster, the policies to compare, seeds; and the simulations there are."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.api import Api, Failure
from frontend.components.cards import card, empty_state, error_state, page_title
from frontend.components.states import state_chip
from frontend.formatting import clock
from frontend.problems import worded
from frontend.routing import add_page, submits
from frontend.shell import NO_CLUSTER
from maat.client import ApiError, calls
from maat.client.errors import FieldProblem
from maat.client.laboratory import SimulationBody

DEFAULT_POLICIES = ("sia", "fifo", "srtf")
FAMILIES = (("philly", "Philly-like"), ("helios", "Helios-like"), ("newtrace", "newTrace-like"))
MAX_RUNS = 24
MAX_FILE_BYTES = 20_000_000
FIELDS = {
    "name": "simulate-name",
    "cluster": "simulate-cluster",
    "jobs": "simulate-jobs",
    "hours": "simulate-hours",
    "seed": "simulate-seed",
    "policy": "simulate-policies",
    "seeds": "simulate-seeds",
}


def layout(**_query: Any) -> html.Div:
    form = html.Div(
        [
            html.Div(id="simulate-problem"),
            dmc.TextInput(id="simulate-name", label="Name", value="Policy comparison"),
            html.Div(
                [
                    html.Label("Trace", className="mantine-InputWrapper-label"),
                    dmc.SegmentedControl(
                        id="simulate-kind",
                        data=[
                            {"value": "generated", "label": "Generated"},
                            {"value": "csv", "label": "CSV file"},
                            {"value": "cluster", "label": "Replay this cluster"},
                        ],
                        value="generated",
                        fullWidth=True,
                        size="xs",
                        transitionDuration=0,
                    ),
                ]
            ),
            html.Div(
                [
                    dmc.Select(
                        id="simulate-family",
                        label="Like",
                        data=[{"value": value, "label": label} for value, label in FAMILIES],
                        value="philly",
                        allowDeselect=False,
                    ),
                    dmc.NumberInput(id="simulate-jobs", label="Jobs", value=40, min=1, allowDecimal=False),
                    dmc.NumberInput(id="simulate-hours", label="Arrive within (h)", value=4, min=0, step=0.5),
                    dmc.NumberInput(id="simulate-seed", label="Trace seed", value=1, min=0, allowDecimal=False),
                ],
                id="simulate-generated",
                className="form-row",
            ),
            html.Div(
                [
                    dcc.Upload(
                        html.Div(
                            ["Drop a workload CSV here, or ", html.A("choose a file", href="#", role="button")],
                            className="panel-state",
                            style={"minHeight": "64px", "border": "1px dashed var(--line)"},
                        ),
                        id="simulate-upload",
                        accept=".csv,text/csv,text/plain",
                        multiple=False,
                        max_size=MAX_FILE_BYTES,
                    ),
                    html.Div(
                        "Columns: name, time, application, num_replicas, batch_size, as in the public Sia and Pollux traces.",
                        id="simulate-file",
                        className="hint",
                    ),
                    html.Div(id="simulate-csv-error", className="form-error", role="alert"),
                ],
                id="simulate-csv",
                style={"display": "none"},
            ),
            html.Div(
                "The jobs that the chosen cluster has had, at the times they were submitted.",
                id="simulate-replay",
                className="hint",
                style={"display": "none"},
            ),
            dmc.TextInput(id="simulate-cluster", label="Cluster (GPU type = nodes × GPUs)", value="t4=6x4,rtx=3x8,a100=2x8"),
            dmc.MultiSelect(
                id="simulate-policies",
                label="Policies to compare",
                data=list(DEFAULT_POLICIES),
                value=list(DEFAULT_POLICIES),
                withAsterisk=True,
            ),
            html.Div(
                [
                    dmc.TextInput(id="simulate-seeds", label="Seeds", value="0", placeholder="0, 1, 2"),
                    dmc.Select(
                        id="simulate-fidelity",
                        label="Fidelity",
                        data=[
                            {"value": "paper", "label": "As in the paper"},
                            {"value": "sia-artifact", "label": "As in the published code"},
                        ],
                        value="paper",
                        allowDeselect=False,
                    ),
                ],
                className="form-row",
            ),
            dmc.Group(
                [dmc.Button("Run simulation", id="simulate-button", n_clicks=0), html.Span(id="simulate-runs", className="hint")],
                gap=12,
                mt=4,
            ),
        ],
        className="form-stack",
        **submits("simulate-button"),
    )
    return html.Div(
        [
            page_title("Simulate"),
            html.Div(
                [
                    card("Compare policies", form, className="span-5"),
                    card("Simulations", html.Div(id="simulate-list", className="scroll-x"), className="span-7"),
                ],
                className="columns",
            ),
            dcc.Store(id="simulate-text"),
            dcc.Store(id="simulate-key", data=uuid4().hex),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(__name__, path="/simulate", name="Simulate", title="Simulate", order=5, layout=layout)

    @app.callback(Output("simulate-policies", "data"), Input("simulate-key", "data"))
    async def offer(_key: str) -> Any:
        try:
            async with api.visitor() as maat:
                policies = (await maat.send(calls.policies()))["items"]
        except Failure:
            return no_update
        return [{"value": policy["name"], "label": policy["title"]} for policy in policies]

    @app.callback(
        Output("simulate-generated", "style"),
        Output("simulate-csv", "style"),
        Output("simulate-replay", "style"),
        Input("simulate-kind", "value"),
    )
    async def fields_of(kind: str) -> tuple[dict[str, str], ...]:
        return tuple({} if kind == own else {"display": "none"} for own in ("generated", "csv", "cluster"))

    @app.callback(
        Output("simulate-text", "data"),
        Output("simulate-file", "children"),
        Output("simulate-csv-error", "children"),
        Input("simulate-upload", "contents"),
        State("simulate-upload", "filename"),
        prevent_initial_call=True,
    )
    async def take_file(contents: str | None, filename: str | None) -> tuple[Any, Any, Any]:
        if not contents:
            return no_update, no_update, no_update
        try:
            text = await asyncio.to_thread(_decoded, contents)
        except ValueError:
            return None, "", f"{filename} is no text in UTF-8, so no CSV file. Choose another file."
        if "\0" in text:
            return None, "", f"{filename} is a binary file, no CSV file. Choose another file."
        return text, f"{filename}: {text.count(chr(10))} lines", ""

    @app.callback(Output("simulate-runs", "children"), Input("simulate-policies", "value"), Input("simulate-seeds", "value"))
    async def count_runs(policies: list[str], seeds: str) -> str:
        numbers = parse_seeds(seeds)
        return "" if numbers is None else f"{len(policies or []) * len(numbers)} runs"

    @app.callback(Output("simulate-list", "children"), Input("live", "data"))
    async def list_simulations(_live: Any) -> Any:
        try:
            async with api.visitor() as maat:
                page = await maat.send(calls.simulations(limit=20))
        except Failure as error:
            return error_state(error)
        return _table(page["items"])

    @app.callback(
        output={
            "errors": {name: Output(target, "error") for name, target in FIELDS.items()},
            "csv": Output("simulate-csv-error", "children", allow_duplicate=True),
            "problem": Output("simulate-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "key": Output("simulate-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("simulate-button", "n_clicks")},
        state={
            "form": {
                name: State(f"simulate-{name}", "value")
                for name in ("name", "kind", "family", "jobs", "hours", "seed", "cluster", "policies", "seeds", "fidelity")
            },
            "text": State("simulate-text", "data"),
            "cluster_id": State("cluster-select", "value"),
            "key": State("simulate-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("simulate-button", "loading"), True, False)],
    )
    async def run(clicks: int | None, form: dict[str, Any], text: str | None, cluster_id: str | None, key: str) -> dict[str, Any]:
        answer: dict[str, Any] = {"errors": dict.fromkeys(FIELDS, ""), "csv": "", "problem": None, "go": no_update, "key": no_update}
        if not clicks:
            return {**answer, "errors": dict.fromkeys(FIELDS, no_update), "csv": no_update}
        wrong = _unfinished(form, text, cluster_id)
        if wrong:
            return {
                **answer,
                "errors": {**answer["errors"], **{name: line for name, line in wrong.items() if name in FIELDS}},
                "csv": wrong.get("csv", ""),
            }
        try:
            async with api.visitor() as maat:
                started = await maat.send(calls.simulate(body_of(form, text=text, cluster_id=cluster_id), idempotency_key=key))
        except Failure as error:
            return {**answer, **_beside(error, answer["errors"], kind=form["kind"]), "key": uuid4().hex}
        return {**answer, "go": f"/simulations/{started['id']}"}


def parse_seeds(text: str | None) -> list[int] | None:
    """`0, 1, 2` as numbers, None where one is no whole number from 0 up."""
    parts = [part for part in (text or "").replace(",", " ").split() if part]
    return [int(part) for part in parts] if parts and all(part.isdecimal() for part in parts) else None


def _unfinished(form: Mapping[str, Any], text: str | None, cluster_id: str | None) -> dict[str, str]:
    """What the form itself can see: no policy, seeds that are no numbers, a file that is missing. All else the service checks."""
    wrong: dict[str, str] = {}
    seeds = parse_seeds(form["seeds"])
    if not form["policies"]:
        wrong["policy"] = "Choose at least one policy."
    if seeds is None:
        wrong["seeds"] = "Give whole numbers from 0 up, with commas between."
    elif len(seeds) * len(form["policies"] or []) > MAX_RUNS:
        wrong["seeds"] = f"That is {len(seeds) * len(form['policies'])} runs. Choose fewer policies or seeds: at most {MAX_RUNS} runs."
    if form["kind"] == "csv" and not text:
        wrong["csv"] = "Choose a workload CSV first."
    if form["kind"] == "cluster" and cluster_id in (None, NO_CLUSTER):
        wrong["cluster"] = "There is no cluster to replay. Choose another trace."
    return wrong


def body_of(form: Mapping[str, Any], *, text: str | None, cluster_id: str | None) -> SimulationBody:
    """The form as the API's body: one run per policy and seed."""
    traces: dict[str, dict[str, object]] = {
        "generated": {"kind": "generated", **{name: form[name] for name in ("family", "jobs", "hours", "seed")}},
        "csv": {"kind": "csv", "text": text},
        "cluster": {"kind": "cluster", "cluster_id": cluster_id},
    }
    return {
        "name": form["name"] or "",
        "trace": traces[form["kind"]],
        "cluster": form["cluster"] or "",
        "runs": [{"policy": policy, "seed": seed} for policy in form["policies"] for seed in parse_seeds(form["seeds"]) or []],
        "fidelity": form["fidelity"],
    }


def _beside(error: Exception, empty: Mapping[str, str], *, kind: str = "") -> dict[str, Any]:
    """A refusal, spread over the fields it names; the rest above the form."""
    if not isinstance(error, ApiError):
        return {"problem": error_state(error)}
    beside, csv, loose = dict(empty), "", False
    for problem in error.errors:
        if problem.field == "text" or (kind == "csv" and problem.field not in FIELDS):
            csv = _row_words(error, problem)
        elif problem.field in FIELDS:
            beside[problem.field] = worded(problem, empty_name="Give the simulation a name.")
        else:
            loose = True
    return {"errors": beside, "csv": csv, "problem": error_state(error) if loose or not error.errors else None}


def _row_words(error: ApiError, problem: FieldProblem) -> str:
    """What is wrong in a file: the detail names row and value, which the field's own message leaves out."""
    words = error.detail or problem.message
    return words if not problem.remedy or problem.remedy in words else f"{words} {problem.remedy}"


def _decoded(contents: str) -> str:
    return base64.b64decode(contents.split(",", 1)[-1]).decode("utf-8-sig")


def _table(simulations: Sequence[Mapping[str, Any]]) -> Any:
    if not simulations:
        return empty_state("No simulation yet", "Choose a trace and policies at the left, then run: the comparison stays here.")
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
                    html.Td(dcc.Link(simulation["name"] or simulation["id"], href=f"/simulations/{simulation['id']}")),
                    html.Td(state_chip(_state_of(runs))),
                    html.Td(", ".join(policies[:4]) + (" …" if len(policies) > 4 else "")),
                    html.Td(str(len(runs)), className="number"),
                    html.Td(clock(simulation["created_at"]), className="number"),
                ]
            )
        )
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _state_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """The state of a simulation, from its runs."""
    states = {run["state"] for run in runs}
    for state in ("running", "failed", "cancelled", "queued"):
        if state in states:
            return "running" if state == "queued" and "succeeded" in states else state
    return "succeeded"
