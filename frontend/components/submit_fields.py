"""The fields of the submit form: what a job needs to say and no more. Knows neither what happens to them nor what they are worth."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html

from frontend.components.job_form import ADAPTIVITY, FIELDS, KINDS, LABELS, meaningless
from frontend.routing import submits
from maat.api.jobs import JobBody

SHAPED = ("gpu_count", "min_gpus", "max_gpus", "batch_size", "max_batch_size", "promised_seconds")
# Fields with a place and a component of their own; any other is a number that stands below them.
LAID_OUT = {
    *SHAPED,
    "name",
    "model",
    "adaptivity",
    "workload_kind",
    "gpu_types",
    "work_scale",
    "external_id",
}
HIDDEN, SHOWN = {"display": "none"}, {"display": "block"}


def field_id(name: str) -> str:
    return "submit-" + name.replace("_", "-")


def box_id(name: str) -> str:
    return field_id(name) + "-box"


def job_fields(*, replaces: bool) -> html.Div:
    """`replaces`: whether the job is proposed in place of another, which may then be cancelled."""
    return html.Div(
        [
            html.Div(id="submit-problem"),
            html.Div(id="submit-like-note"),
            dmc.Switch(
                id="submit-replace",
                label="Cancel that job once this one is submitted",
                checked=replaces,
                style=HIDDEN,
            ),
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
            _row(
                dmc.Select(
                    id="submit-workload-kind",
                    label=LABELS["workload_kind"],
                    data=[{"value": value, "label": label} for value, label in KINDS],
                    value="training",
                    allowDeselect=False,
                ),
                _shaped(
                    dmc.NumberInput(
                        id="submit-promised-seconds",
                        label=LABELS["promised_seconds"],
                        value="",
                        min=0,
                        step=0.1,
                        decimalScale=6,
                        withAsterisk=True,
                        debounce=300,
                    ),
                    "promised_seconds",
                ),
            ),
            html.Div(
                [
                    html.Label(
                        "What Maat may vary, besides the GPU type",
                        className="mantine-InputWrapper-label",
                        htmlFor="submit-adaptivity",
                    ),
                    dmc.SegmentedControl(
                        id="submit-adaptivity",
                        data=[{"value": value, "label": label} for value, label in ADAPTIVITY],
                        value="adaptive",
                        fullWidth=True,
                        size="xs",
                        transitionDuration=0,
                    ),
                    html.Div(id="submit-adaptivity-error", className="form-error"),
                ]
            ),
            _row(
                _integer("gpu_count", withAsterisk=True),
                _integer("min_gpus", value=1, withAsterisk=True),
                _integer("max_gpus", placeholder="no limit"),
                _integer("batch_size"),
                _integer("max_batch_size"),
            ),
            _row(
                dmc.MultiSelect(
                    id="submit-gpu-types",
                    label=LABELS["gpu_types"],
                    data=[],
                    placeholder="any",
                    clearable=True,
                ),
                dmc.NumberInput(
                    id="submit-work-scale",
                    label=LABELS["work_scale"],
                    value=1,
                    min=0,
                    step=0.1,
                    decimalScale=4,
                    debounce=300,
                ),
            ),
            _row(
                dmc.TextInput(
                    id="submit-external-id",
                    label=LABELS["external_id"],
                    placeholder="optional, unique",
                    debounce=300,
                ),
                dmc.Switch(
                    id="submit-preemptible",
                    label=JobBody.model_fields["preemptible"].title,
                    checked=True,
                    mt=26,
                ),
            ),
            _row(*(_number(name) for name in FIELDS if name not in LAID_OUT)),
            dmc.Group(
                [
                    dmc.Button("Submit job", id="submit-button", n_clicks=0),
                    html.Span("Enter submits", className="hint"),
                ],
                gap=12,
                mt=4,
            ),
        ],
        className="form-stack",
        **submits("submit-button"),
    )


def _row(*fields: Any) -> html.Div:
    return html.Div(list(fields), className="form-row")


def _shaped(field: Any, name: str) -> html.Div:
    """A field that is there only for the kinds of job of which it says something."""
    return html.Div(
        field,
        id=box_id(name),
        style=HIDDEN if name in meaningless("adaptive", "training") else SHOWN,
    )


def _number(name: str) -> Any:
    """A whole number as the schema describes it: label, default, limits and help."""
    field = JobBody.model_fields[name]
    limits = {
        kind: limit
        for rule in field.metadata
        for kind in ("ge", "le")
        if (limit := getattr(rule, kind, None)) is not None
    }
    return dmc.NumberInput(
        id=field_id(name),
        label=field.title,
        description=field.description,
        value=field.default,
        min=limits.get("ge"),
        max=limits.get("le"),
        step=1,
        allowDecimal=False,
        debounce=300,
    )


def _integer(name: str, *, placeholder: str = "", value: int | str = "", **more: Any) -> html.Div:
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
        **more,
    )
    return _shaped(field, name)


def error_id(name: str) -> str:
    return "submit-adaptivity-error" if name == "adaptivity" else field_id(name)


def named_model(models: list[Any] | None, name: str | None) -> dict[str, Any] | None:
    return next((model for model in models or [] if model["name"] == name), None)
