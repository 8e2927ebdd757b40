"""The charts of one uploaded measurement: which one, which part of it, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import graph
from frontend.figures.measured import (
    bins_figure,
    pairs_figure,
    rates_figure,
    shares_figure,
    spreads_figure,
)
from frontend.loading import failed_figure
from maat.api.measurements import MeasurementFiguresOut, MeasurementOut
from maat.client import calls
from maat.figures.base import empty_figure

HEIGHT = 420
NOT_DRAWN = ("trace",)
_PART = " on "
_ALL_TYPES = "all GPU types"


def drawn_fields() -> list[Component]:
    """The choices, and the two charts; the second is of unequal GPUs alone."""
    choices = [
        dmc.Select(
            id="measurements-shown",
            label="Measurements",
            placeholder="none yet",
            data=[],
            value=None,
            allowDeselect=False,
            searchable=True,
        ),
        dmc.Select(
            id="measurements-part", label="Of these", data=[], value=None, allowDeselect=False
        ),
    ]
    return [
        html.Div(choices, className="form-row"),
        graph("measurements-chart"),
        html.Div(graph("measurements-bins", height=HEIGHT), id="measurements-bins-box"),
    ]


def register_drawn(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(offer, api),
        output={
            "shown": Output("measurements-shown", "data"),
            "chosen": Output("measurements-shown", "value"),
        },
        inputs={"_changed": Input("measurements-changed", "data")},
    )
    answer(
        app,
        partial(offer_parts, api),
        output={
            "parts": Output("measurements-part", "data"),
            "part": Output("measurements-part", "value"),
        },
        inputs={"chosen": Input("measurements-shown", "value")},
    )
    answer(
        app,
        partial(draw, api),
        output={
            "chart": Output("measurements-chart", "figure"),
            "bins": Output("measurements-bins", "figure"),
            "box": Output("measurements-bins-box", "style"),
        },
        inputs={
            "chosen": Input("measurements-shown", "value"),
            "part": Input("measurements-part", "value"),
            "scheme": Input("scheme", "data"),
        },
    )


async def offer(api: Api, *, _changed: int) -> Changes:
    """Offer the measurements that can be drawn; the newest is chosen."""
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.measurements(limit=100))
    except Failure:
        return {"shown": [], "chosen": None}
    found = [
        {"value": one["id"], "label": one["name"]}
        for one in page["items"]
        if one["kind"] not in NOT_DRAWN
    ]
    return {"shown": found, "chosen": found[0]["value"] if found else None}


async def offer_parts(api: Api, *, chosen: str | None) -> Changes:
    """Offer what the measurement covers; its first part is chosen."""
    if not chosen:
        return {"parts": [], "part": None}
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.measurement(chosen))
    except Failure:
        return {"parts": [], "part": None}
    parts = parts_of(found)
    return {"parts": parts, "part": parts[0] if parts else None}


def parts_of(measurement: MeasurementOut) -> Sequence[str]:
    """Return `resnet on v100` and so on; of interference the GPU types, of locality one part."""
    covers = measurement["covers"]
    if measurement["kind"] == "locality":
        return [_ALL_TYPES]
    if measurement["kind"] == "interference":
        return list(covers)
    return [f"{name}{_PART}{kind}" for kind, names in covers.items() for name in names]


async def draw(api: Api, *, chosen: str | None, part: str | None, scheme: str | None) -> Changes:
    """Draw the part of the measurement."""
    if not scheme:
        return NOTHING
    if not chosen or not part:
        words = "Upload unequal GPUs, interference, steps or profiles: they are drawn here."
        drawn = empty_figure(scheme, "Nothing to draw yet", words, height=HEIGHT)
        return {"chart": drawn, "bins": drawn, "box": HIDDEN}
    model, _, gpu_type = part.rpartition(_PART)
    try:
        async with api.visitor() as maat:
            of_type = None if gpu_type == _ALL_TYPES else gpu_type
            call = calls.measurement_figures(chosen, model=model or None, gpu_type=of_type)
            found = await maat.send(call)
    except Failure as error:
        failed = failed_figure(scheme, height=HEIGHT)(error)
        return {"chart": failed, "bins": failed, "box": HIDDEN}
    return charts(found, model=model, gpu_type=gpu_type, scheme=scheme)


def charts(
    found: MeasurementFiguresOut, *, model: str, gpu_type: str, scheme: str
) -> dict[str, object]:
    """Return the charts of what was found."""
    nothing = empty_figure(scheme, "Nothing to draw", height=HEIGHT)
    if found["scores"]:
        bins = bins_figure(
            found["scores"], application=model, gpu_type=gpu_type, scheme=scheme, height=HEIGHT
        )
        shares = shares_figure(found["scores"], scheme=scheme, height=HEIGHT)
        return {"chart": shares, "bins": bins, "box": {}}
    if found["pairs"] is not None:
        drawn = pairs_figure(found["pairs"], scheme=scheme)
    elif found["spreads"]:
        drawn = spreads_figure(found["spreads"], scheme=scheme, height=HEIGHT)
    elif found["rates"] is not None:
        drawn = rates_figure(found["rates"], scheme=scheme, height=HEIGHT)
    else:
        drawn = nothing
    return {"chart": drawn, "bins": nothing, "box": HIDDEN}
