"""What the conditions offer, and the list of reservations that are added to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, html

from frontend.api import Api
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import error_state
from frontend.components.conditions.fields import INTERFERENCE, VARIABILITY
from frontend.components.conditions.values import UPLOADED, Reservation, reservation_of
from frontend.components.conditions.words import reserved
from frontend.components.reservation_fields import (
    register_reservation_errors,
    reservation_states,
    unfinished_reservation,
)
from frontend.formatting import plural
from frontend.forms import FormValues, Told
from frontend.loading import by_part, loaded
from frontend.routing import aria
from maat.api.measurements import MeasurementOut
from maat.client import calls


def register_conditions(app: Dash, api: Api, prefix: str, *, policies: str) -> None:
    """Register the callbacks of the fields. `policies`: the field that offers the policies."""
    register_reservation_errors(app, prefix)
    answer(
        app,
        partial(offer, api),
        output={
            "policies": Output(policies, "data"),
            "fidelity": Output(f"{prefix}-fidelity", "data"),
            "fidelities": Output(f"{prefix}-fidelities", "data"),
            "interference": Output(f"{prefix}-interference", "data"),
            "variability": Output(f"{prefix}-variability", "data"),
            "problem": Output(f"{prefix}-problem", "children", allow_duplicate=True),
        },
        inputs={"_key": Input(f"{prefix}-key", "data")},
        prevent_initial_call="initial_duplicate",
    )
    answer(
        app,
        describe_fidelity,
        output={"says": Output(f"{prefix}-fidelity-says", "children")},
        inputs={
            "chosen": Input(f"{prefix}-fidelity", "value"),
            "summaries": Input(f"{prefix}-fidelities", "data"),
        },
    )
    answer(
        app,
        partial(reserve, prefix),
        output={
            "kept": Output(f"{prefix}-reservations", "data"),
            "listed": Output(f"{prefix}-reservations-list", "children"),
            "told": Output(f"{prefix}-reserve-told", "data"),
            "type": Output(f"{prefix}-reserve-type", "value"),
            "holder": Output(f"{prefix}-reserve-holder", "value"),
        },
        inputs={
            "_add": Input(f"{prefix}-reserve-add", "n_clicks"),
            "_remove": Input({"unreserve": prefix, "index": ALL}, "n_clicks"),
        },
        state={
            "values": reservation_states(prefix),
            "kept": State(f"{prefix}-reservations", "data"),
        },
        prevent_initial_call=True,
    )


async def offer(api: Api, *, _key: str) -> Changes:
    """Offer policies, fidelities, and the measurements that were uploaded."""
    async with api.visitor() as maat:
        known, presets, uploaded = await asyncio.gather(
            loaded(maat.send(calls.policies())),
            loaded(maat.send(calls.fidelities())),
            loaded(maat.send(calls.measurements(limit=100))),
        )
    failures = [one.failure for one in (known, presets, uploaded) if one.failure]
    return by_part(
        {
            "policies": lambda: [
                {"value": policy["name"], "label": policy["title"]} for policy in known()["items"]
            ],
            "fidelity": lambda: [preset["name"] for preset in presets()["items"]],
            "fidelities": lambda: {one["name"]: one["summary"] for one in presets()["items"]},
            "interference": lambda: _offered(INTERFERENCE, "interference", uploaded()["items"]),
            "variability": lambda: _offered(VARIABILITY, "variability", uploaded()["items"]),
            **({"problem": lambda: error_state(failures[0])} if failures else {}),
        },
        failed={},
    )


async def describe_fidelity(*, chosen: str, summaries: dict[str, str]) -> Changes:
    return {"says": summaries.get(chosen, "")}


async def reserve(
    prefix: str,
    *,
    _add: int,
    _remove: list[int | None],
    values: FormValues,
    kept: list[Reservation],
) -> Changes:
    """Add the reservation of the fields, or remove the one whose button was pressed."""
    if not ctx.triggered or not ctx.triggered[0]["value"]:
        return NOTHING
    if isinstance(ctx.triggered_id, dict):
        left = [one for index, one in enumerate(kept) if index != ctx.triggered_id["index"]]
        return {"kept": left, "listed": reservation_list(prefix, left)}
    if unfinished_reservation(values):
        return {"told": Told(values=values, errors={})}
    more = [*kept, reservation_of(values)]
    return {
        "kept": more,
        "listed": reservation_list(prefix, more),
        "told": None,
        "type": "",
        "holder": "",
    }


def _offered(
    fixed: Sequence[tuple[str, str]], kind: str, uploaded: Sequence[MeasurementOut]
) -> list[dict[str, str]]:
    """Return the fixed choices, then the uploaded ones.

    An interference table with several GPU types has a choice for each type.
    """
    choices = [
        (one["id"], one["name"])
        for one in uploaded
        if one["kind"] == kind and (kind != "interference" or len(one["covers"]) == 1)
    ]
    tables = [
        one for one in uploaded if one["kind"] == kind == "interference" and len(one["covers"]) > 1
    ]
    choices += [
        (f"{one['id']}#{gpu_type}", f"{one['name']}, {gpu_type}")
        for one in tables
        for gpu_type in one["covers"]
    ]
    return [
        {"value": value, "label": words}
        for value, words in (*fixed, *((f"{UPLOADED}{given}", name) for given, name in choices))
    ]


def reservation_list(prefix: str, kept: Sequence[Reservation]) -> html.Table | None:
    """Return the reservations that a form has, each with a button that removes it."""
    if not kept:
        return None
    rows = [
        html.Tr(
            [
                html.Td(reserved(one)),
                html.Td(
                    dmc.Button(
                        "Remove",
                        id={"unreserve": prefix, "index": index},
                        variant="subtle",
                        size="compact-xs",
                        **aria(f"Remove the reservation of {plural(one['gpu_count'], 'GPU')}"),
                    ),
                    className="number",
                ),
            ]
        )
        for index, one in enumerate(kept)
    ]
    return html.Table(html.Tbody(rows), className="plain-table")
