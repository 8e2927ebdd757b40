"""The fields of a reservation, and reservations in words, for the laboratory and live clusters."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import State, html
from dash.development.base_component import Component

from frontend.formatting import duration
from frontend.forms import FormValues

FIELDS = ("type", "gpus", "for", "holder", "from", "until")


def reservation_fields(prefix: str, *, job_placeholder: str) -> list[Component]:
    """Two rows of fields. Hours count from the beginning: of the trace, or from now."""
    holder = dmc.Select(
        id=f"{prefix}-reserve-for",
        label="For",
        data=[{"value": "tenant", "label": "Tenant"}, {"value": "job", "label": "Job"}],
        value="tenant",
        allowDeselect=False,
    )
    return [
        html.Div(
            [
                dmc.NumberInput(
                    id=f"{prefix}-reserve-gpus", label="GPUs", value=4, min=1, allowDecimal=False
                ),
                dmc.TextInput(id=f"{prefix}-reserve-type", label="GPU type", placeholder="a100"),
                holder,
                dmc.TextInput(
                    id=f"{prefix}-reserve-holder", label="Whose", placeholder=job_placeholder
                ),
            ],
            className="form-row narrow",
        ),
        html.Div(
            [
                dmc.NumberInput(
                    id=f"{prefix}-reserve-from", label="From (h)", value=0, min=0, step=1
                ),
                dmc.NumberInput(
                    id=f"{prefix}-reserve-until",
                    label="Until (h)",
                    placeholder="no end",
                    value="",
                    min=0,
                    step=1,
                ),
                dmc.Button(
                    "Reserve", id=f"{prefix}-reserve-add", n_clicks=0, variant="default", mt=22
                ),
            ],
            className="form-row narrow",
        ),
    ]


def reservation_states(prefix: str) -> dict[str, State]:
    return {name: State(f"{prefix}-reserve-{name}", "value") for name in FIELDS}


def unfinished_reservation(values: FormValues) -> str | None:
    """What the fields themselves can see to be missing; None where nothing is."""
    if not (values["type"] or "").strip():
        return "Name the GPU type that is reserved."
    if not isinstance(values["gpus"], int | float) or values["gpus"] < 1:
        return "Give how many GPUs are reserved, from 1 up."
    if not (values["holder"] or "").strip():
        return f"Name the {values['for']} that the GPUs are reserved for."
    until = hours_of(values["until"])
    if until is not None and until <= (hours_of(values["from"]) or 0.0):
        return "It must end after it begins."
    return None


def hours_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def held_for(start_seconds: float, end_seconds: float | None) -> str:
    """`from 2 h until 10 h`, `always`."""
    if end_seconds is None:
        return f"from {duration(start_seconds)} on" if start_seconds else "always"
    return (
        f"from {duration(start_seconds)} until {duration(end_seconds)}"
        if start_seconds
        else f"until {duration(end_seconds)}"
    )
