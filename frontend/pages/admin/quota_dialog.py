"""The dialog of one quota: its fields, what is wrong in them, and the body that they make."""

from __future__ import annotations

from typing import TypedDict

import dash_mantine_components as dmc
from dash import html

from frontend.attributes import submits
from frontend.components.dialogs import dialog
from frontend.forms import FormValues, wrong_number
from maat.api.quotas import QuotaBody, QuotaOut
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

FIELDS = ("tenant", "gpu_type", "guaranteed", "ceiling")


class Pressed(TypedDict):
    """A press of a button that opens the dialog. All but `tenant` are empty for a new quota."""

    at: int
    tenant: str
    gpu_type: str
    guaranteed: str
    ceiling: str
    version: str


def field_id(name: str) -> str:
    return "admin-quota-" + name.replace("_", "-")


def pressed_for(quota: QuotaOut | None) -> dict[str, str]:
    """Return what a button says of the quota that it changes; None for a new one."""
    if quota is None:
        return dict.fromkeys((*FIELDS, "version"), "")
    bound = "" if quota["ceiling"] is None else str(quota["ceiling"])
    return {
        "tenant": quota["tenant"],
        "gpu_type": quota["gpu_type"],
        "guaranteed": str(quota["guaranteed"]),
        "ceiling": bound,
        "version": str(quota["version"]),
    }


def quota_dialog() -> dmc.Modal:
    accept = QuotaBody.model_fields["accept_preemption"]
    form = html.Div(
        [
            html.Div(id="admin-quota-problem"),
            dmc.Select(
                id=field_id("tenant"), label="Tenant", data=[], searchable=True, withAsterisk=True
            ),
            dmc.Select(id=field_id("gpu_type"), label="GPU type", data=[], withAsterisk=True),
            _number("guaranteed", withAsterisk=True),
            _number("ceiling", placeholder="none"),
            dmc.Switch(
                id="admin-quota-accept",
                label=accept.title,
                description="For a ceiling below what the tenant's jobs hold now.",
                checked=False,
            ),
            dmc.Group(
                [
                    dmc.Button("Remove", id="admin-quota-remove", variant="subtle", n_clicks=0),
                    dmc.Button("Set quota", id="admin-quota-set", n_clicks=0),
                ],
                justify="space-between",
                mt=4,
            ),
        ],
        className="form-stack",
        **submits("admin-quota-set"),
    )
    return dialog("admin-quota", "Quota", form)


def _number(name: str, *, placeholder: str = "", withAsterisk: bool = False) -> dmc.NumberInput:
    field = QuotaBody.model_fields[name]
    return dmc.NumberInput(
        id=field_id(name),
        label=field.title,
        description=field.description,
        placeholder=placeholder,
        value="",
        min=0,
        allowDecimal=False,
        clampBehavior="none",
        withAsterisk=withAsterisk,
        inputWrapperOrder=["label", "input", "description", "error"],
    )


def unfinished(values: FormValues) -> dict[str, str]:
    """Return what the fields themselves can see to be wrong, by field."""
    found = {
        "tenant": "" if values["tenant"] else "Choose a tenant.",
        "gpu_type": "" if values["gpu_type"] else "Choose a GPU type.",
        **{name: wrong_number(QuotaBody, name, values[name]) for name in FIELDS[2:]},
    }
    if values["guaranteed"] in ("", None):
        found["guaranteed"] = "Give a whole number from 0 up."
    return {name: words for name, words in found.items() if words}


def body_of(values: FormValues, *, accept: bool) -> RawBody:
    ceiling = None if values["ceiling"] in ("", None) else values["ceiling"]
    return {
        "guaranteed": values["guaranteed"],
        "ceiling": ceiling,
        "accept_preemption": accept,
    }


def place_of(problem: FieldProblem) -> str | None:
    """Return the dialog's field of a problem."""
    return problem.field if problem.field in FIELDS else None
