"""The fields of the submit form."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.attributes import HIDDEN, READS, submits
from frontend.components.labels import labels_field
from frontend.components.numbers import number_field
from frontend.components.priority import priority_field
from frontend.pages.submit.later import later_fields
from frontend.pages.submit.model import ADAPTIVITY, KINDS, LABELS, NUMBERS, meaningless
from frontend.visitors import with_right
from maat.api.jobs import JobBody

SHOWN = {"display": "block"}


def one_form(content: Component, *, box_id: str, opened: bool) -> dmc.Collapse:
    """A part that belongs to one of both forms; its fields exist, undrawn, while it is closed."""
    return dmc.Collapse(content, id=box_id, opened=opened, transitionDuration=0)


def field_id(name: str) -> str:
    return "submit-" + name.replace("_", "-")


def box_id(name: str) -> str:
    return field_id(name) + "-box"


def job_fields(*, replaces: bool) -> html.Div:
    """Return all fields of the form.

    Args:
        replaces: Whether the job takes the place of another, which may then be cancelled.
    """
    note = [
        html.Div(id="submit-problem"),
        html.Div(id="submit-like-note"),
        dmc.Switch(
            id="submit-replace",
            label="Cancel that job once this one is submitted",
            checked=replaces,
            style=HIDDEN,
        ),
    ]
    button = [
        with_right(dmc.Button("Submit job", id="submit-button", n_clicks=0)),
        dmc.Button("Try it", id="submit-try", variant="default", n_clicks=0, **READS),
        html.Span("Enter submits", className="hint"),
    ]
    return html.Div(
        [
            *note,
            *_what_fields(),
            _adaptivity_field(),
            _row(
                _integer("gpu_count", withAsterisk=True),
                _integer("min_gpus", value=1, withAsterisk=True),
                _integer("max_gpus", placeholder="no limit"),
                _integer("batch_size"),
                _integer("max_batch_size"),
            ),
            *_rest_fields(),
            _row(*(number_field(field_id(name), JobBody, name) for name in NUMBERS)),
            later_fields("submit"),
            dmc.Group(button, gap=12, mt=4),
            html.Div(id="submit-tried"),
        ],
        className="form-stack",
        **submits("submit-button"),
    )


def _what_fields() -> list[Component]:
    """Name, model, and what the job does."""
    promised = dmc.NumberInput(
        id="submit-promised-seconds",
        label=LABELS["promised_seconds"],
        value="",
        min=0,
        step=0.1,
        decimalScale=6,
        withAsterisk=True,
        debounce=300,
    )
    kind = dmc.Select(
        id="submit-workload-kind",
        label=LABELS["workload_kind"],
        data=[{"value": value, "label": label} for value, label in KINDS],
        value="training",
        allowDeselect=False,
    )
    return [
        dmc.TextInput(
            id="submit-name",
            label=LABELS["name"],
            placeholder="resnet18-lr-sweep-3",
            withAsterisk=True,
            debounce=300,
        ),
        dmc.Select(
            id="submit-model",
            label=LABELS["model"],
            data=[],
            searchable=True,
            withAsterisk=True,
            allowDeselect=False,
            comboboxProps={"transitionProps": {"duration": 0}},
        ),
        _row(kind, _shaped(promised, "promised_seconds")),
    ]


def _adaptivity_field() -> html.Div:
    choice = dmc.SegmentedControl(
        id="submit-adaptivity",
        data=[{"value": value, "label": label} for value, label in ADAPTIVITY],
        value="adaptive",
        fullWidth=True,
        size="xs",
        transitionDuration=0,
    )
    label = html.Label(
        "What Maat may vary, besides the GPU type",
        className="mantine-InputWrapper-label",
        htmlFor="submit-adaptivity",
    )
    return html.Div([label, choice, html.Div(id="submit-adaptivity-error", className="form-error")])


def _rest_fields() -> list[Component]:
    """GPU types, work, the owner's id, and whether the job may be preempted."""
    types = dmc.MultiSelect(
        id="submit-gpu-types",
        label=LABELS["gpu_types"],
        data=[],
        placeholder="any",
        clearable=True,
    )
    work = dmc.NumberInput(
        id="submit-work-scale",
        label=LABELS["work_scale"],
        value=1,
        min=0,
        step=0.1,
        decimalScale=4,
        debounce=300,
    )
    own_id = dmc.TextInput(
        id="submit-external-id",
        label=LABELS["external_id"],
        placeholder="optional, unique",
        debounce=300,
    )
    preemptible = dmc.Switch(
        id="submit-preemptible",
        label=JobBody.model_fields["preemptible"].title,
        checked=True,
        mt=26,
    )
    return [
        _row(types, work),
        _row(priority_field(field_id("priority")), preemptible),
        labels_field(field_id("labels")),
        own_id,
    ]


def _row(*fields: Component) -> html.Div:
    return html.Div(list(fields), className="form-row")


def _shaped(field: Component, name: str) -> html.Div:
    """A field that is there only for the kinds of job of which it says something."""
    return html.Div(
        field,
        id=box_id(name),
        style=HIDDEN if name in meaningless("adaptive", "training") else SHOWN,
    )


def _integer(
    name: str, *, placeholder: str = "", value: int | str = "", withAsterisk: bool = False
) -> html.Div:
    field = dmc.NumberInput(
        id=field_id(name),
        label=LABELS[name],
        placeholder=placeholder,
        value=value,
        min=1,
        step=1,
        allowDecimal=False,
        clampBehavior="none",
        debounce=300,
        withAsterisk=withAsterisk,
    )
    return _shaped(field, name)


def error_id(name: str) -> str:
    return "submit-adaptivity-error" if name == "adaptivity" else field_id(name)
