"""A field of a form for a number of a request, as the schema describes it."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc

from frontend.forms import described
from maat.api.fields import Body


def number_field(
    field_id: str, body: type[Body], name: str, *, bare: bool = False, **more: Any
) -> dmc.NumberInput:
    """Return the field: label, default, limits and help. `bare`: without the help."""
    schema = described(body, name)
    default = schema.get("default")
    return dmc.NumberInput(
        **{
            "id": field_id,
            "label": schema["title"],
            "description": None if bare else schema.get("description"),
            "value": "" if default is None else default,
            "min": schema.get("minimum", 0),
            "max": schema.get("maximum"),
            "step": 1,
            "allowDecimal": schema["type"] == "number",
            "clampBehavior": "none",
            "debounce": 300,
            "inputWrapperOrder": ["label", "input", "description", "error"],
            **more,
        }
    )
