"""The fields of a command, as the schemas describe them, and what its script may change."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.attributes import HIDDEN, READS, submits
from frontend.components.cards import card, folded_fields
from frontend.components.labels import labels_field
from frontend.components.numbers import number_field
from frontend.components.priority import priority_field
from frontend.pages.submit.fields import SHOWN, one_form
from frontend.pages.submit.later import later_fields
from frontend.pages.submit.run_model import (
    ADAPTS,
    MORE_OF_JOB,
    MORE_OF_RUN,
    NUMBERS,
    SHAPED,
    SHARES,
    meaningless,
)
from frontend.pages.submit.run_secrets import secret_fields
from frontend.visitors import with_right
from maat.api.commands import CommandBody
from maat.api.jobs import JobBody

SCRIPT = """\
import maat.agent

job = maat.agent.start()
model = Net().to(job.device)
…
model, opt, loader = job.adapt(model, opt, loader, scheduler=sched, max_batch_size=4096)
for epoch in job.epochs(90):
    …"""
_PLACEHOLDERS = {
    "max_batch_size": "8 × the batch size",
    "max_gpus": "no limit",
    "total_samples": "the script says",
    "locality_penalty": "as measured",
    **dict.fromkeys(SHARES, "not known"),
}
_STEPS = {"stop_seconds": 10, **dict.fromkeys(SHARES, 0.05)}
_WHOLE_SCHEMAS = {**CommandBody.model_fields, **JobBody.model_fields}


def run_id(name: str) -> str:
    return "submit-run-" + name.replace("_", "-")


def run_form() -> dmc.Collapse:
    """Return the form of a command, hidden at first."""
    return one_form(card("Command", _fields()), box_id="submit-run", opened=False)


def run_beside() -> dmc.Collapse:
    """Return what a script may change to adapt, hidden at first."""
    told = card("A script that adapts", _script())
    return one_form(told, box_id="submit-run-beside", opened=False)


def _fields() -> html.Div:
    numbers = html.Div([_boxed(name) for name in SHAPED], className="form-row")
    button = [
        with_right(dmc.Button("Submit command", id="submit-run-button", n_clicks=0)),
        dmc.Button("Try it", id="submit-run-try", variant="default", n_clicks=0, **READS),
        html.Span("Enter submits", className="hint"),
    ]
    return html.Div(
        [
            html.Div(id="submit-run-problem"),
            html.Div(id="submit-run-note"),
            _text("name", "night-run-3", withAsterisk=True),
            _text("line", "python train.py --lr 0.1", label="Command", withAsterisk=True),
            _text("cwd", "/home/me/work", withAsterisk=True),
            dmc.Textarea(
                id=run_id("env"),
                label=CommandBody.model_fields["env"].title,
                description="One NAME=VALUE a line. Everyone who sees the job sees them.",
                autosize=True,
                minRows=2,
                maxRows=8,
                debounce=300,
            ),
            secret_fields(),
            _adaptivity(),
            numbers,
            html.Div(_profile(), id=run_id("profile") + "-box"),
            folded_fields("More", _more(), box_id="submit-run-more"),
            later_fields("submit-run"),
            dmc.Group(button, gap=12, mt=4),
            html.Div(id="submit-run-tried"),
        ],
        className="form-stack",
        **submits("submit-run-button"),
    )


def _adaptivity() -> html.Div:
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
    error = html.Div(id=run_id("adaptivity") + "-error", className="form-error")
    return html.Div([label, choice, error])


def _more() -> list[Component]:
    """What most commands leave as it is."""
    types = dmc.MultiSelect(
        id=run_id("gpu_types"),
        label=JobBody.model_fields["gpu_types"].title,
        data=[],
        placeholder="any",
        clearable=True,
    )
    preemptible = dmc.Switch(
        id=run_id("preemptible"), label=JobBody.model_fields["preemptible"].title, checked=True
    )
    model = _text(
        "model",
        "its script's name",
        description="What it trains. What is learnt of GPUs is shared by jobs of one model.",
    )
    use = CommandBody.model_fields["utilisation"]
    shares = html.Fieldset(
        [
            html.Legend(use.title, className="mantine-InputWrapper-label"),
            html.Div(use.description, className="hint"),
            html.Div([_number(name, bare=True) for name in SHARES], className="form-row wide"),
        ],
        className="parameter-group",
    )
    return [
        html.Div([_number(name) for name in MORE_OF_RUN[:2]], className="form-row wide"),
        html.Div([_number(name) for name in MORE_OF_RUN[2:]], className="form-row wide"),
        types,
        preemptible,
        html.Div([_number(name) for name in MORE_OF_JOB], className="form-row wide"),
        priority_field(run_id("priority")),
        model,
        labels_field(run_id("labels")),
        _text("external_id", "optional, unique"),
        shares,
    ]


def _text(name: str, example: str, **more: Any) -> dmc.TextInput:
    label = _WHOLE_SCHEMAS[name].title if name in _WHOLE_SCHEMAS else None
    return dmc.TextInput(
        id=run_id(name), placeholder=example, debounce=300, **{"label": label, **more}
    )


def _boxed(name: str) -> html.Div:
    """A number that is there only for the kinds of commands of which it says something."""
    style = HIDDEN if name in meaningless("adaptive") else SHOWN
    needed = name in ("gpu_count", "batch_size", "min_gpus")
    return html.Div(
        _number(name, bare=True, withAsterisk=needed), id=run_id(name) + "-box", style=style
    )


def _number(name: str, **more: Any) -> dmc.NumberInput:
    more |= {"placeholder": _PLACEHOLDERS.get(name, ""), "step": _STEPS.get(name, 1)}
    return number_field(run_id(name), NUMBERS[name], name, **more)


def _profile() -> dmc.Switch:
    field = CommandBody.model_fields["profile"]
    return dmc.Switch(
        id=run_id("profile"), label=field.title, description=field.description, checked=True
    )


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
