"""What the conditions offer, and the list of reservations that are added to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from frontend.addresses import address_note, quoted
from frontend.api import Api
from frontend.attributes import aria
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import error_state
from frontend.components.conditions.fields import INTERFERENCE, PROFILES, VARIABILITY
from frontend.components.conditions.values import UPLOADED, Reservation, reservation_of
from frontend.components.conditions.words import reserved
from frontend.components.reservation_fields import (
    register_reservation_errors,
    reservation_states,
    unfinished_reservation,
)
from frontend.formatting import plural
from frontend.forms import FormValues, Told
from frontend.loading import loaded
from maat.api.measurements import MeasurementOut
from maat.api.policies import DescribedOut, FidelityOut
from maat.client import calls

_OFFERED = ("fidelity", "profiles", "interference", "variability")


def register_conditions(app: Dash, api: Api, prefix: str, *, policies: str, placers: str) -> None:
    """Register the callbacks of the fields. `policies`, `placers`: the fields that offer them."""
    register_reservation_errors(app, prefix)
    fields = {"policy": policies, "placer": placers, "trace": "uploaded"}
    fields |= {name: name for name in _OFFERED}
    answer(
        app,
        partial(offer, api, prefix, fields),
        output={
            "offered": {
                name: Output(f"{prefix}-{field}", "data") for name, field in fields.items()
            },
            "values": {
                name: Output(f"{prefix}-{field}", "value", allow_duplicate=True)
                for name, field in fields.items()
            },
            "fidelities": Output(f"{prefix}-fidelities", "data"),
            "problem": Output(f"{prefix}-problem", "children", allow_duplicate=True),
            "unknown": Output(f"{prefix}-unknown", "children"),
            "left": Output(f"{prefix}-asked-names", "data"),
        },
        inputs={"_key": Input(f"{prefix}-key", "data")},
        state={
            "asked": State(f"{prefix}-asked-names", "data"),
            "usual": State(f"{prefix}-usual", "data"),
        },
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


async def offer(
    api: Api,
    prefix: str,
    fields: Mapping[str, str],
    *,
    _key: str,
    asked: Mapping[str, Sequence[str]],
    usual: FormValues,
) -> Changes:
    """Offer policies, placers, fidelities, and the measurements that were uploaded.

    What the address names and is not there is said above the page, and its field holds the usual.
    """
    async with api.visitor() as maat:
        policies, placers, presets, uploaded = await asyncio.gather(
            loaded(maat.send(calls.policies())),
            loaded(maat.send(calls.placers())),
            loaded(maat.send(calls.fidelities())),
            loaded(maat.send(calls.measurements(limit=100))),
        )
    failures = [one.failure for one in (policies, placers, presets, uploaded) if one.failure]
    offered = {
        **({"policy": _described(policies.answer["items"])} if policies.answer else {}),
        **({"placer": _described(placers.answer["items"])} if placers.answer else {}),
        **({"fidelity": _named(presets.answer["items"])} if presets.answer else {}),
        **(_measured(uploaded.answer["items"]) if uploaded.answer else {}),
    }
    values, unknown = settled(fields, asked, usual, offered)
    changes: dict[str, object] = {
        "offered": {name: offered.get(name, no_update) for name in fields},
        "values": {name: values.get(name, no_update) for name in fields},
    }
    if unknown:  # once: the choices are offered again after a refusal
        changes["left"] = {}
        changes["unknown"] = address_note(unknown, f"/{prefix}", "The form as it opens")
    if presets.answer:
        changes["fidelities"] = {one["name"]: one["summary"] for one in presets.answer["items"]}
    return changes | ({"problem": error_state(failures[0])} if failures else {})


def settled(
    fields: Mapping[str, str],
    asked: Mapping[str, Sequence[str]],
    usual: FormValues,
    offered: Mapping[str, Sequence[Mapping[str, str]]],
) -> tuple[dict[str, object], list[str]]:
    """Return what fields hold instead of what an address names and nobody offers; and sentences.

    `fields`: of what is offered, by its noun. `asked`: by field, what the address says.
    """
    values: dict[str, object] = {}
    unknown: list[str] = []
    for noun, field in fields.items():
        if noun not in offered:
            continue
        known = {one["value"] for one in offered[noun]}
        lost = [name for name in asked.get(field, ()) if name not in known]
        if not lost:
            continue
        left = [name for name in asked[field] if name in known]
        several = isinstance(usual[field], list)
        values[noun] = (left or usual[field]) if several else usual[field]
        unknown += [f"There is no {noun} {quoted(name)}." for name in lost]
    return values, unknown


def _described(all_of: Sequence[DescribedOut]) -> list[dict[str, str]]:
    return [_choice(one["name"], one["title"]) for one in all_of]


def _named(presets: Sequence[FidelityOut]) -> list[dict[str, str]]:
    return [_choice(one["name"], one["name"]) for one in presets]


def _measured(uploaded: Sequence[MeasurementOut]) -> dict[str, list[dict[str, str]]]:
    return {
        "profiles": _offered(PROFILES, "profiles", uploaded),
        "interference": _offered(INTERFERENCE, "interference", uploaded),
        "variability": _offered(VARIABILITY, "variability", uploaded),
        "trace": [_choice(one["id"], one["name"]) for one in uploaded if one["kind"] == "trace"],
    }


def _choice(value: str, label: str) -> dict[str, str]:
    return {"value": value, "label": label}


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
        _choice(value, words)
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
