"""Reservations on the cluster's page: the list, and how operators add and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TypedDict
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, as_inputs, in_browser
from frontend.components.cards import card, scrolls, skeleton
from frontend.components.dialogs import dialog, question, register_question
from frontend.components.names import isolated
from frontend.components.notices import notice, refusal
from frontend.components.reservation_fields import (
    hours_of,
    register_reservation_errors,
    reservation_fields,
    reservation_states,
    unfinished_reservation,
)
from frontend.components.states import gpu_chip
from frontend.formatting import clock, count, gpus, parse_time
from frontend.forms import FormValues, Told, errors_by_field
from frontend.loading import loaded
from frontend.others import OTHER_JOB, is_other
from maat.api.clusters import ClusterStateOut, GpuOut
from maat.api.reservations import ReservationOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem
from maat.colours import gpu_order

PREFIX = "cluster"
# Field of a refusal -> field of the dialog.
PLACES = {
    "gpu_type": "type",
    "gpu_count": "gpus",
    "tenant": "holder",
    "job_id": "holder",
    "start_at": "from",
    "end_at": "until",
}


REMOVE = "cluster-remove"
_FROM_THEN_ON = "From the next round on its GPUs are anybody's."


class Pressed(TypedDict):
    """A press of the button that removes a reservation. `told`: the reservation in words."""

    at: int
    reservation: str
    told: str


def reservations_card() -> Component:
    table = scrolls("cluster-reserved", skeleton(60), label="Reservations")
    stores = [dcc.Store(id="cluster-reserve-pressed"), dcc.Store(id="cluster-remove-pressed")]
    return card("Reserved", [table, *stores], aside=html.Div(id="cluster-reserve"))


def reservation_dialog() -> dmc.Modal:
    form = html.Div(
        [
            html.Div(
                "Everybody else leaves these GPUs free. "
                "Hours count from now, on the clock of the cluster.",
                className="hint",
            ),
            html.Div(id="cluster-reserve-problem"),
            *reservation_fields(PREFIX, job_placeholder="tenant name, or job id"),
            html.Div(id="cluster-reserve-preview", className="hint", role="status"),
            dcc.Store(id="cluster-reserve-key", data=uuid4().hex),
        ],
        className="form-stack",
        **submits("cluster-reserve-add"),
    )
    return dialog("cluster-reserve-ask", "Reserve GPUs", form)


def remove_dialog() -> dmc.Modal:
    return question(REMOVE, "Remove this reservation?", keeps="Keep it", does="Remove")


def reserved_now(reservations: Sequence[ReservationOut]) -> dict[str, int]:
    """Count the GPUs that are reserved at present, by type; jobs of the holder may be on them."""
    found: dict[str, int] = {}
    for one in reservations:
        if one["state"] == "active":
            found[one["gpu_type"]] = found.get(one["gpu_type"], 0) + one["gpu_count"]
    return found


def reserve_button(may: bool) -> dmc.Button | None:
    if not may:
        return None
    return dmc.Button(
        "Reserve GPUs",
        id="cluster-reserve-open",
        variant="subtle",
        size="compact-xs",
        **click_target("cluster-reserve-pressed"),
    )


def register(app: Dash, api: Api) -> None:
    register_reservation_errors(app, PREFIX)
    in_browser(
        app,
        "openOn",
        Output("cluster-reserve-ask", "opened", allow_duplicate=True),
        Input("cluster-reserve-pressed", "data"),
        prevent_initial_call=True,
    )

    answer(
        app,
        partial(reserve, api),
        output={
            "asks": Output("cluster-reserve-ask", "opened"),
            "told": Output("cluster-reserve-told", "data"),
            "problem": Output("cluster-reserve-problem", "children"),
            "key": Output("cluster-reserve-key", "data"),
            "acted": Output("cluster-acted", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("cluster-reserve-add", "n_clicks")},
        state={
            "cluster_id": State("cluster-select", "value"),
            "key": State("cluster-reserve-key", "data"),
            "values": reservation_states(PREFIX),
        },
        prevent_initial_call=True,
        running=[(Output("cluster-reserve-add", "loading"), True, False)],
    )
    answer(
        app,
        partial(preview, api),
        output={"told": Output("cluster-reserve-preview", "children")},
        inputs={
            "opened": Input("cluster-reserve-ask", "opened"),
            "values": as_inputs(reservation_states(PREFIX)),
        },
        state={"cluster_id": State("cluster-select", "value")},
        prevent_initial_call=True,
    )
    register_question(
        app,
        REMOVE,
        pressed="cluster-remove-pressed",
        ask=words_of,
        act=partial(remove, api),
        changed=Output("cluster-acted", "data", allow_duplicate=True),
        state={"cluster_id": State("cluster-select", "value")},
    )


async def preview(api: Api, *, opened: bool, values: FormValues, cluster_id: str) -> Changes:
    """Say how many of the GPUs are free now, and what becomes of jobs on the others."""
    if not opened:
        return NOTHING
    async with api.visitor() as maat:
        state = (await loaded(maat.cluster_state(cluster_id))).answer
    return {"told": preview_of(state, values) if state else ""}


def preview_of(state: ClusterStateOut, values: FormValues) -> str:
    """What the reservation of the fields would meet now; what is free if its type is not there."""
    capacity, free = state["capacity_by_type"], state["free_by_type"]
    gpu_type, holder = ((values[name] or "").strip() for name in ("type", "holder"))
    if gpu_type not in capacity:
        each = (f"{free.get(t, 0)} of {gpus(capacity[t], t)}" for t in gpu_order(capacity))
        return f"Free now: {', '.join(each)}."
    has, wanted = capacity[gpu_type], values["gpus"]
    told = f"{free.get(gpu_type, 0)} of {gpus(has, gpu_type)} are free now"
    if not holder or not isinstance(wanted, int | float) or not 1 <= wanted <= has:
        return f"{told}."
    of_tenant = values["for"] == "tenant"
    held = sum(
        gpu["gpu_type"] == gpu_type
        and any(whose != holder for whose in _holders(gpu, of_tenant=of_tenant))
        for gpu in state["gpus"]
    )
    left = has - int(wanted)
    told = f"{told}. Jobs of others hold {count(held)} and may hold {count(left)} once it has begun"
    if held <= left:
        return f"{told}: none has to leave its GPUs."
    return f"{told}: the round takes {count(held - left)} back, and they move, shrink or wait."


def _holders(gpu: GpuOut, *, of_tenant: bool) -> list[str | None]:
    """Return the tenants or the jobs that hold a GPU: several where jobs share it."""
    if not gpu["held"]:
        return []
    jobs = (gpu, *gpu["shared_with"])
    return [one["tenant"] if of_tenant else one["job_id"] for one in jobs]


async def reserve(
    api: Api, *, clicks: int | None, cluster_id: str, key: str, values: FormValues
) -> Changes:
    """Reserve what the fields say, from now on by the cluster's clock."""
    if not clicks:
        return NOTHING
    if unfinished_reservation(values):
        return {"told": Told(values=values, errors={}), "problem": None}
    try:
        async with api.visitor() as maat:
            cluster = await maat.send(calls.cluster(cluster_id))
            body = body_of(values, now=cluster["now"])
            await maat.send(calls.reserve(cluster_id, body, idempotency_key=key))
    except Failure as error:
        beside, above = errors_by_field(error, _place, empty_name="")
        told = Told(values=values, errors=beside)
        return {"told": told, "problem": above, "key": uuid4().hex}
    return {
        "asks": False,
        "told": None,
        "problem": None,
        "key": uuid4().hex,
        "acted": key,
        "notices": notice("GPUs reserved", "Rounds leave them to their holder."),
    }


def words_of(pressed: Pressed) -> str:
    """What to ask before the reservation whose button was pressed is removed."""
    return f"{pressed['told']}. {_FROM_THEN_ON}"


async def remove(api: Api, *, chosen: Pressed, cluster_id: str) -> Changes:
    try:
        async with api.visitor() as maat:
            await maat.send(calls.remove_reservation(cluster_id, chosen["reservation"]))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": chosen["at"], "notices": notice("Reservation removed", _FROM_THEN_ON)}


def body_of(values: FormValues, *, now: str) -> RawBody:
    """The fields as the API's body. `now`: the cluster's own time."""
    holder: RawBody = (
        {"tenant": values["holder"].strip()}
        if values["for"] == "tenant"
        else {"job_id": values["holder"].strip()}
    )
    body: RawBody = {
        "gpu_type": values["type"].strip(),
        "gpu_count": int(values["gpus"]),
        **holder,
    }
    begin, end = hours_of(values["from"]), hours_of(values["until"])
    if begin:
        body["start_at"] = _after(now, begin)
    if end is not None:
        body["end_at"] = _after(now, end)
    return body


def _after(now: str, hours: float) -> str:
    moment = parse_time(now)
    if moment is None:
        raise ValueError(f"the service gave no time: {now!r}")
    return (moment + timedelta(hours=hours)).isoformat()


def _place(problem: FieldProblem) -> str | None:
    return PLACES.get(problem.field)


def reservations_table(reservations: Sequence[ReservationOut], *, may: bool) -> Component:
    """What is reserved now or will be, and for whom; with buttons for who may remove it."""
    if not reservations:
        return html.Div(
            "Nothing is reserved: every round may use all GPUs for anybody.", className="hint"
        )
    return html.Table(
        html.Tbody([_row(one, may=may) for one in reservations]),
        className="plain-table many-columns",
    )


def _row(one: ReservationOut, *, may: bool) -> html.Tr:
    what = f"{one['gpu_count']} × {one['gpu_type']}"
    button = dmc.Button(
        "Remove",
        variant="subtle",
        size="compact-xs",
        **click_target(
            "cluster-remove-pressed", reservation=one["id"], told=_reservation_text(one, what)
        ),
        **aria(f"Remove the reservation of {what}"),
    )
    told = [
        dmc.Group(
            [gpu_chip(one["gpu_type"], what), html.Span("for"), html.Span(_whom(one))], gap=6
        ),
        html.Div(_when(one), className="caption"),
    ]
    return html.Tr([html.Td(told), html.Td(button if may else "", className="number")])


def _reservation_text(one: ReservationOut, what: str) -> str:
    whose = f"of tenant {isolated(one['tenant'])}" if one["tenant"] else "of one job"
    return f"{what} {whose}, {_when(one)}"


def _whom(one: ReservationOut) -> str | dcc.Link:
    """For whom; of another tenant no more than that."""
    if one["job_id"]:
        return (
            OTHER_JOB
            if is_other(one["job_id"])
            else dcc.Link("a job", href=f"/jobs/{one['job_id']}", title=one["job_id"])
        )
    return f"tenant {one['tenant']}" if one["tenant"] else "another tenant"


def _when(one: ReservationOut) -> str:
    begin = "" if one["state"] == "active" else f"from {clock(one['start_at'])} "
    end = "it is removed" if one["end_at"] is None else f"{clock(one['end_at'])} of cluster time"
    return f"{begin}until {end}"
