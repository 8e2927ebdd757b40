"""The page's parts: the two forms behind one choice, beside the list of experiments."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import HIDDEN, aria, submits
from frontend.components.cards import card, folded_fields, page_title, scrolls, skeleton
from frontend.components.conditions import fidelity_field
from frontend.components.numbers import number_field
from frontend.components.once_seen import OnceSeen
from frontend.components.trace_fields import generated_fields
from frontend.pages.experiments.forms import (
    AUTOSCALING,
    CATALOG,
    FORMS,
    KINDS,
    TRAINED,
    TUNING,
    field_value,
    takes_of_address,
)
from frontend.routing import QueryValue, query_value
from frontend.visitors import with_right

SAYS = {
    AUTOSCALING: (
        "Rent nodes while they are worth it: one autoscaler counts goodput, another throughput; "
        "fixed numbers of nodes stand beside them (Pollux, section 5.4.1)."
    ),
    TUNING: (
        "The same search with elastic trials and with trials on static GPUs: which ends sooner? "
        "Scores are a declared formula, times are simulated (Pollux, section 5.4.2)."
    ),
}


def layout(kind: QueryValue = None, **query: QueryValue) -> html.Div:
    """`kind`: of the form that is shown; `query`: its values."""
    asked = query_value(kind)
    chosen = asked if asked is not None and asked in FORMS else AUTOSCALING
    forms = {AUTOSCALING: _autoscaling_form(), TUNING: _tuning_form()}
    _fill_in(forms[chosen], chosen, query)
    choice = dmc.SegmentedControl(
        id="experiments-kind",
        data=[{"value": value, "label": label} for value, label in KINDS],
        value=chosen,
        fullWidth=True,
        transitionDuration=0,
        mb=12,
        **aria("Kind of experiment"),
    )
    shown = [
        html.Div(form, id=f"experiments-{name}", style={} if name == chosen else HIDDEN)
        for name, form in forms.items()
    ]
    experiments = scrolls("experiments-list", skeleton(120), label="Experiments")
    return html.Div(
        [
            page_title("Experiments"),
            html.Div(
                [
                    card("New experiment", [choice, *shown], className="span-5"),
                    card("Experiments", experiments, className="span-7"),
                ],
                className="columns",
            ),
        ]
    )


def _fill_in(form: Component, kind: str, query: dict[str, QueryValue]) -> None:
    """Put the values of an address into the fields; what the form cannot take is left out."""
    takes = takes_of_address()
    for name in FORMS[kind].fields:
        called = "gpus" if name == "cluster" else name
        value = query_value(query.get(called))
        if value is None or takes[called](value) is not None:
            continue
        field = form[f"{kind}-{name}"]
        field.value = field_value(name, value)
        if name in FORMS[kind].offered and value not in _values(field.data):
            field.data = [*field.data, {"value": value, "label": value}]
    if kind == AUTOSCALING:
        _show_trained(form, form[f"{kind}-trained"].value)


def _values(data: list[object]) -> set[object]:
    return {one["value"] if isinstance(one, dict) else one for one in data}


def _show_trained(form: Component, trained: str) -> None:
    for part, style in shown_parts(trained).items():
        form[f"{AUTOSCALING}-of-{part}"].style = style


def shown_parts(trained: str) -> dict[str, dict[str, str]]:
    """Return the style of each part of the form that only one kind of work needs."""
    return {
        **{name: {} if name == trained else HIDDEN for name, _ in TRAINED},
        "workload": HIDDEN if trained == "model" else {},
    }


def _autoscaling_form() -> html.Div:
    prefix = AUTOSCALING
    trained = dmc.SegmentedControl(
        id=f"{prefix}-trained",
        data=[{"value": value, "label": label} for value, label in TRAINED],
        value="model",
        fullWidth=True,
        size="xs",
        transitionDuration=0,
    )
    label = html.Label("What is trained", className="mantine-InputWrapper-label")
    uploaded = dmc.Select(
        id=f"{prefix}-uploaded",
        label="Trace",
        placeholder="none yet: upload one on the page Measurements",
        data=[],
        value=None,
        searchable=True,
    )
    thresholds = [
        _number(prefix, "upper", value=0.667, step=0.05),
        _number(prefix, "lower", step=0.05),
        _number(prefix, "window"),
        _number(prefix, "give_back_below", step=0.05),
    ]
    return _form(
        prefix,
        [
            _name(prefix, "Cloud training"),
            html.Div([label, trained]),
            _part(prefix, "model", [_choice(prefix, "model", "Model", "imagenet")]),
            _part(
                prefix,
                "generated",
                generated_fields(prefix, jobs=10, hours=2, seed=1, several=False),
                row=True,
            ),
            _part(prefix, "uploaded", [uploaded]),
            _part(
                prefix,
                "workload",
                [_choice(prefix, "policy", "Policy that shares out the nodes", "pollux")],
            ),
            _cluster(prefix, "Nodes to rent from (GPU type = nodes × GPUs)", "t4=16x4"),
            dmc.TextInput(
                id=f"{prefix}-fixed_nodes",
                label="Fixed numbers of nodes to compare with",
                placeholder="1, 2, 4, … and all",
                value="",
            ),
            folded_fields(
                "Thresholds, profiles and fidelity",
                [html.Div(thresholds, className="form-row roomy"), *_conditions(prefix)],
                box_id=f"{prefix}-more",
            ),
        ],
        "Run auto-scaling",
    )


def _tuning_form() -> html.Div:
    prefix = TUNING
    batch = _number(prefix, "static_batch_per_gpu", placeholder="128, or the model's largest")
    rows = (
        [_number(prefix, "trials"), _number(prefix, "at_a_time")],
        [_number(prefix, "static_gpus"), batch],
    )
    last = [_number(prefix, "work_scale", step=1), _number(prefix, "seed")]
    return _form(
        prefix,
        [
            _name(prefix, "Hyper-parameter search"),
            _choice(prefix, "model", "Model of every trial", "cifar10"),
            _cluster(prefix, "Cluster (GPU type = nodes × GPUs)", "a100=2x8"),
            *(html.Div(row, className="form-row") for row in rows),
            html.Div(last, className="form-row"),
            _choice(prefix, "policy", "Policy of the elastic search", "pollux"),
            folded_fields(
                "Profiles and fidelity",
                _conditions(prefix, fidelity="pollux-artifact"),
                box_id=f"{prefix}-more",
            ),
        ],
        "Run search",
    )


def _form(prefix: str, fields: list[Component], does: str) -> html.Div:
    return html.Div(
        [
            html.Div(SAYS[prefix], className="hint"),
            html.Div(id=f"{prefix}-problem"),
            *fields,
            dmc.Group([with_right(dmc.Button(does, id=f"{prefix}-button", n_clicks=0))], mt=4),
            dcc.Store(id=f"{prefix}-key", data=uuid4().hex),
            dcc.Store(id=f"{prefix}-told"),
        ],
        className="form-stack",
        **submits(f"{prefix}-button"),
    )


def _part(prefix: str, name: str, fields: list[Component], *, row: bool = False) -> html.Div:
    """Fields that only one kind of work needs."""
    is_shown = not shown_parts("model")[name]
    return html.Div(
        fields if is_shown else OnceSeen(fields),
        id=f"{prefix}-of-{name}",
        style={} if is_shown else HIDDEN,
        className="form-row" if row else "",
    )


def _name(prefix: str, value: str) -> dmc.TextInput:
    return dmc.TextInput(id=f"{prefix}-name", label="Name", value=value)


def _cluster(prefix: str, label: str, value: str) -> dmc.TextInput:
    return dmc.TextInput(id=f"{prefix}-cluster", label=label, value=value)


def _choice(prefix: str, name: str, label: str, value: str) -> dmc.Select:
    return dmc.Select(
        id=f"{prefix}-{name}",
        label=label,
        data=[{"value": value, "label": value}],
        value=value,
        allowDeselect=False,
        searchable=True,
    )


def _number(prefix: str, name: str, **more: Any) -> dmc.NumberInput:
    return number_field(f"{prefix}-{name}", FORMS[prefix].body_type, name, bare=True, **more)


def _conditions(prefix: str, fidelity: str = "paper") -> list[Component]:
    profiles = _choice(prefix, "profiles", "Step times and gradients of models", CATALOG)
    profiles.data = [{"value": CATALOG, "label": "The catalog's"}]
    rules = fidelity_field(prefix)
    rules.data, rules.value = [fidelity], fidelity
    return [profiles, rules]
