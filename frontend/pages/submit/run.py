"""The submit form where the cluster runs commands: it asks for one instead of a model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card
from frontend.components.notices import notice
from frontend.forms import FormValues, errors_by_field
from frontend.pages.submit.fields import HIDDEN, SHOWN
from frontend.pages.submit.model import EMPTY_NAME
from frontend.routing import submits
from frontend.shell import NO_CLUSTER
from maat.api.commands import stem_of
from maat.api.jobs import JobBody
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem
from maat.vocabulary import ExecutorKind

FIELDS = ("name", "line", "cwd", "env", "adaptivity", "gpu_count", "batch_size", "max_batch_size")
ADAPTS = (("adaptive", "GPUs and batch size"), ("rigid", "Nothing"))
ONLY_ADAPTIVE, ONLY_RIGID = ("batch_size", "max_batch_size"), ("gpu_count",)
PROFILE = "profile"  # a switch, for scripts that adapt
# Pointer into the body -> field of the form.
_PLACES = {"": "line", "argv": "line", "cwd": "cwd", "env": "env"}
SCRIPT = """\
import maat.agent

job = maat.agent.start()
model = Net().to(job.device)
…
model, opt, loader = job.adapt(model, opt, loader, scheduler=sched, max_batch_size=4096)
for epoch in job.epochs(90):
    …"""


def run_id(name: str) -> str:
    return "submit-run-" + name.replace("_", "-")


def run_columns() -> html.Div:
    """Return the form of a command and what its script may change, hidden at first."""
    cards = [
        card("Command", _fields(), className="span-5"),
        card("A script that adapts", _script(), className="span-7"),
    ]
    return html.Div(html.Div(cards, className="columns"), id="submit-run", style=HIDDEN)


def _fields() -> html.Div:
    label = html.Label(
        "What Maat may vary, besides the GPU type",
        className="mantine-InputWrapper-label",
        htmlFor=run_id("adaptivity"),
    )
    choice = dmc.SegmentedControl(
        id=run_id("adaptivity"),
        data=[{"value": value, "label": label} for value, label in ADAPTS],
        value="adaptive",
        fullWidth=True,
        size="xs",
        transitionDuration=0,
    )
    numbers = html.Div(
        [_number(name) for name in (*ONLY_RIGID, *ONLY_ADAPTIVE)], className="form-row"
    )
    button = [
        dmc.Button("Submit command", id="submit-run-button", n_clicks=0),
        html.Span("Enter submits", className="hint"),
    ]
    return html.Div(
        [
            html.Div(id="submit-run-problem"),
            _text("name", "Name", "night-run-3", withAsterisk=True),
            _text("line", "Command", "python train.py --lr 0.1", withAsterisk=True),
            _text("cwd", "Folder", "/home/me/work", withAsterisk=True),
            dmc.Textarea(
                id=run_id("env"),
                label="Environment",
                description="One NAME=VALUE a line. Everyone who sees the job sees them.",
                autosize=True,
                minRows=2,
                maxRows=8,
                debounce=300,
            ),
            html.Div(
                [
                    label,
                    choice,
                    html.Div(id=run_id("adaptivity") + "-error", className="form-error"),
                ]
            ),
            numbers,
            _profile(),
            dmc.Group(button, gap=12, mt=4),
        ],
        className="form-stack",
        **submits("submit-run-button"),
    )


def _text(name: str, label: str, example: str, **more: Any) -> dmc.TextInput:
    return dmc.TextInput(id=run_id(name), label=label, placeholder=example, debounce=300, **more)


def _number(name: str) -> html.Div:
    optional = name == "max_batch_size"
    field = dmc.NumberInput(
        id=run_id(name),
        label=JobBody.model_fields[name].title,
        placeholder="8 × the batch size" if optional else "",
        value="",
        min=1,
        step=1,
        allowDecimal=False,
        clampBehavior="none",
        debounce=300,
        withAsterisk=not optional,
    )
    return html.Div(field, id=run_id(name) + "-box", style=HIDDEN if name in ONLY_RIGID else SHOWN)


def _profile() -> html.Div:
    switch = dmc.Switch(
        id=run_id(PROFILE),
        label="Measure it first, on one GPU of each type",
        description="At most 20 s of steps each, on GPUs that are free. Nothing of it is kept.",
        checked=True,
    )
    return html.Div(switch, id=run_id(PROFILE) + "-box")


def _script() -> list[Component]:
    words = (
        "Maat runs the command once per GPU. A script may be any program; "
        "one that changes these five lines tells how fast it is, "
        "and goes on with another number of GPUs or batch size:"
    )
    told = (
        "The batch size is the one that the script was tuned for. A script that reports nothing "
        "takes “Nothing” and a number of GPUs."
    )
    return [
        html.P(words),
        html.Pre(SCRIPT, className="job-log"),
        html.P(told, className="hint"),
    ]


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(choose, api),
        output={"played": Output("submit-played", "style"), "run": Output("submit-run", "style")},
        inputs={"cluster_id": Input("cluster-select", "value")},
    )
    answer(
        app,
        shape,
        output={
            name: Output(run_id(name) + "-box", "style")
            for name in (*ONLY_RIGID, *ONLY_ADAPTIVE, PROFILE)
        },
        inputs={"adaptivity": Input(run_id("adaptivity"), "value")},
    )
    errors = {name: Output(run_id(name), "error") for name in FIELDS if name != "adaptivity"} | {
        "adaptivity": Output(run_id("adaptivity") + "-error", "children")
    }
    answer(
        app,
        partial(submit, api),
        output={
            "errors": errors,
            "problem": Output("submit-run-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": NOTICES,
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-run-button", "n_clicks")},
        state={
            "values": {
                **{name: State(run_id(name), "value") for name in FIELDS},
                PROFILE: State(run_id(PROFILE), "checked"),
            },
            "cluster_id": State("cluster-select", "value"),
            "key": State("submit-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-run-button", "loading"), True, False)],
    )


async def choose(api: Api, *, cluster_id: str | None) -> Changes:
    """Show the form of commands for a cluster that runs them, else the form of models."""
    if cluster_id is None:
        return NOTHING
    runs = False
    if cluster_id != NO_CLUSTER:
        try:
            async with api.visitor() as maat:
                runs = (await maat.cluster(cluster_id))["executor"] != ExecutorKind.SIMULATED
        except Failure:
            return NOTHING
    return {"played": HIDDEN if runs else SHOWN, "run": SHOWN if runs else HIDDEN}


async def shape(*, adaptivity: str) -> Changes:
    """Hide the numbers that mean nothing for such a script."""
    adaptive = (*ONLY_ADAPTIVE, PROFILE)
    hidden = ONLY_RIGID if adaptivity == "adaptive" else adaptive
    return {name: HIDDEN if name in hidden else SHOWN for name in (*ONLY_RIGID, *adaptive)}


async def submit(
    api: Api, *, clicks: int | None, values: FormValues, cluster_id: str | None, key: str
) -> Changes:
    """Submit the command, or say beside the fields what is wrong."""
    if not clicks:
        return NOTHING
    unsaid: dict[str, str] = dict.fromkeys(FIELDS, "")
    wrong = unfinished(values)
    if wrong:
        return {"errors": unsaid | wrong, "problem": None}
    try:
        async with api.visitor() as maat:
            body = body_of(values, cluster_id=cluster_id)
            job = await maat.send(calls.submit_job(body, idempotency_key=key))
    except Failure as error:
        beside, above = errors_by_field(error, place_of, empty_name=EMPTY_NAME)
        return {"errors": unsaid | beside, "problem": above, "key": uuid4().hex}
    return {
        "errors": unsaid,
        "problem": None,
        "go": f"/jobs/{job['id']}",
        "notices": notice(f"{job['name']} submitted", "The next round considers it."),
    }


def unfinished(values: FormValues) -> dict[str, str]:
    """All that the form itself can see, by field. The service checks everything again."""
    found = {
        "name": "" if (values["name"] or "").strip() else EMPTY_NAME,
        "line": _wrong_line(values["line"] or ""),
        "cwd": "" if values["cwd"] else "Say in which folder it is to run.",
        "env": _wrong_lines(values["env"] or ""),
    }
    if values["adaptivity"] == "rigid" and not values["gpu_count"]:
        found["gpu_count"] = "Say how many GPUs it needs."
    if values["adaptivity"] == "adaptive" and not values["batch_size"]:
        found["batch_size"] = "Say for which batch size it was tuned."
    return {field: words for field, words in found.items() if words}


def body_of(values: FormValues, *, cluster_id: str | None) -> RawBody:
    """Return the form as the API's body. What the command trains is named by its script."""
    argv = shlex.split(values["line"])
    is_rigid = values["adaptivity"] == "rigid"
    numbers = {
        name: values[name]
        for name in (ONLY_RIGID if is_rigid else ONLY_ADAPTIVE)
        if values[name] not in ("", None)
    }
    return {
        "name": values["name"],
        "model": stem_of(argv),
        "cluster_id": cluster_id,
        "adaptivity": values["adaptivity"],
        **numbers,
        "run": {
            "argv": argv,
            "cwd": values["cwd"],
            "env": dict(_variables(values["env"] or "")),
            **({} if is_rigid else {"profile": bool(values[PROFILE])}),
        },
    }


def place_of(problem: FieldProblem) -> str | None:
    """Return the form's field for a problem: `/run/argv/0` is the command."""
    first, _, rest = problem.pointer.strip("/").partition("/")
    if first == "run":
        return _PLACES.get(rest.split("/")[0])
    return "line" if first == "model" else first if first in FIELDS else None


def _variables(lines: str) -> Mapping[str, str]:
    pairs = (line.partition("=") for line in lines.splitlines() if line.strip())
    return {name.strip(): value for name, _, value in pairs}


def _wrong_line(line: str) -> str:
    try:
        words = shlex.split(line)
    except ValueError as error:
        return f"A shell could not read it: {str(error).lower()}. Close every quote."
    return "" if words else "Give a command, such as python train.py."


def _wrong_lines(lines: str) -> str:
    for number, line in enumerate(lines.splitlines(), start=1):
        if line.strip() and not line.partition("=")[0].strip():
            return f"Line {number} has no name: write NAME=VALUE."
        if line.strip() and "=" not in line:
            return f"Line {number} has no value: write {line.strip()}=VALUE."
    return ""
