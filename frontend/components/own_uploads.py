"""Fields that choose uploads to stand in for published data of the papers.

They stand in the page's address. The list of the papers and the page of an item have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import Changes, answer, in_browser
from frontend.components.cards import folded_fields
from frontend.routing import QueryValue, query_value
from maat.api.measurements import MeasurementOut
from maat.client import calls

LABELS: Mapping[str, str] = {
    "profiles": "Profiles, or throughputs",
    "trace": "Trace",
    "variability": "Unequal GPUs",
    "interference": "Interference",
}
"""The kinds of uploads that items take, and what their fields are called."""
MOST_OFFERED = 100
_EVERY_GPU = "every GPU"
SAYS = (
    "What is made of uploads says so, and never counts as an item's result of published data. An "
    "upload that lacks a model or a GPU type which an item needs is refused."
)


def upload_fields(asked: Mapping[str, QueryValue]) -> Component:
    """Return the fields. `asked`: what the address says of each kind."""
    chosen = uploads_in(asked)
    fields = [
        dmc.Select(
            id=_id(kind),
            label=label,
            value=chosen.get(kind),
            data=[{"value": name, "label": name} for name in [chosen.get(kind)] if name],
            placeholder="as published",
            clearable=True,
            searchable=True,
            size="xs",
        )
        for kind, label in LABELS.items()
    ]
    return folded_fields(
        "Uploads instead of published data",
        [html.Div(fields, className="form-row wide"), html.Div(SAYS, className="hint")],
        box_id="papers-own",
        is_open=bool(chosen),
    )


def uploads_in(given: Mapping[str, QueryValue]) -> dict[str, str]:
    """Return the chosen uploads by kind, of an address or of the fields."""
    found = {kind: query_value(given.get(kind)) for kind in LABELS}
    return {kind: name for kind, name in found.items() if name}


def chosen_uploads() -> dict[str, Input]:
    """Return what a callback reads the fields by; `uploads_in` makes uploads of it."""
    return {kind: Input(_id(kind), "value") for kind in LABELS}


def register_own_uploads(app: Dash, api: Api) -> None:
    """Register the callbacks of the fields, once for all pages that have them."""
    answer(
        app,
        partial(offer, api),
        output={kind: Output(_id(kind), "data") for kind in LABELS},
        inputs={"_page": Input("papers-own", "id")},
    )
    in_browser(
        app,
        "uploadsInUrl",
        Output("papers-own", "className"),
        *(Input(_id(kind), "value") for kind in LABELS),
        prevent_initial_call=True,
    )


async def offer(api: Api, *, _page: str) -> Changes:
    """Offer the tenant's uploads, newest first; of a table of pairs each GPU type."""
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.measurements(limit=MOST_OFFERED))
    except Failure:
        return {kind: [] for kind in LABELS}
    return {
        kind: [
            {"value": name, "label": name}
            for each in found["items"]
            if each["kind"] == kind
            for name in _names(each)
        ]
        for kind in LABELS
    }


def _names(upload: MeasurementOut) -> list[str]:
    types = list(upload["covers"])
    if upload["kind"] != "interference" or types == [_EVERY_GPU]:
        return [upload["name"]]
    return [f"{upload['name']}#{gpu_type}" for gpu_type in types]


def _id(kind: str) -> str:
    return f"papers-own-{kind}"
