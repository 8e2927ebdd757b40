"""The part of the cluster's page that shows what is reserved, and where operators reserve GPUs and remove reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.api import Api, Failure
from frontend.components.cards import card, scrolls, skeleton
from frontend.components.dialogs import dialog
from frontend.components.notices import notice, refusal
from frontend.components.reservation_fields import (
    hours_of,
    reservation_fields,
    reservation_states,
    unfinished_reservation,
)
from frontend.components.states import gpu_chip
from frontend.formatting import clock, parse_time
from frontend.forms import spread
from frontend.others import OTHER_JOB, is_other
from frontend.routing import aria, in_browser, presses
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

MAY_RESERVE = "clusters:write"
PREFIX = "cluster"


def reservations_card() -> Any:
    table = scrolls("cluster-reserved", skeleton(60), label="Reservations")
    stores = [dcc.Store(id="cluster-reserve-pressed"), dcc.Store(id="cluster-remove-pressed")]
    return card("Reserved", [table, *stores], aside=html.Div(id="cluster-reserve"))


def reservation_dialog() -> Any:
    form = html.Div(
        [
            html.Div(
                "Everybody else leaves these GPUs free. Hours count from now, on the clock of the cluster.",
                className="hint",
            ),
            html.Div(id="cluster-reserve-problem"),
            *reservation_fields(PREFIX, job_placeholder="tenant name, or job id"),
            html.Div(id="cluster-reserve-error", className="form-error", role="alert"),
            dcc.Store(id="cluster-reserve-key", data=uuid4().hex),
        ],
        className="form-stack",
    )
    return dialog("cluster-reserve-ask", "Reserve GPUs", form)


def reserve_button(may: bool) -> Any:
    if not may:
        return None
    return dmc.Button(
        "Reserve GPUs",
        id="cluster-reserve-open",
        variant="subtle",
        size="compact-xs",
        **presses("cluster-reserve-pressed"),
    )


def register_reservations(app: Dash, api: Api) -> None:
    in_browser(
        app,
        "openOn",
        Output("cluster-reserve-ask", "opened", allow_duplicate=True),
        Input("cluster-reserve-pressed", "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("cluster-reserve-ask", "opened"),
        Output("cluster-reserve-error", "children"),
        Output("cluster-reserve-problem", "children"),
        Output("cluster-reserve-key", "data"),
        Output("cluster-acted", "data", allow_duplicate=True),
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("cluster-reserve-add", "n_clicks"),
        State("cluster-select", "value"),
        State("cluster-reserve-key", "data"),
        reservation_states(PREFIX),
        prevent_initial_call=True,
        running=[(Output("cluster-reserve-add", "loading"), True, False)],
    )
    async def reserve(
        clicks: int | None, cluster_id: str, key: str, values: dict[str, Any]
    ) -> tuple[Any, ...]:
        if not clicks:
            return (no_update,) * 6
        wrong = unfinished_reservation(values)
        if wrong:
            return no_update, wrong, None, no_update, no_update, no_update
        try:
            async with api.visitor() as maat:
                cluster = await maat.send(calls.cluster(cluster_id))
                await maat.send(
                    calls.reserve(
                        cluster_id, body_of(values, now=cluster["now"]), idempotency_key=key
                    )
                )
        except Failure as error:
            beside, above = spread(error, _place, empty_name="")
            return no_update, beside.get("error", ""), above, uuid4().hex, no_update, no_update
        return (
            False,
            "",
            None,
            uuid4().hex,
            key,
            notice("GPUs reserved", "Rounds leave them to their holder."),
        )

    @app.callback(
        Output("cluster-acted", "data", allow_duplicate=True),
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("cluster-remove-pressed", "data"),
        State("cluster-select", "value"),
        prevent_initial_call=True,
    )
    async def remove(pressed: dict[str, Any] | None, cluster_id: str) -> tuple[Any, Any]:
        if not pressed:
            return no_update, no_update
        try:
            async with api.visitor() as maat:
                await maat.send(calls.remove_reservation(cluster_id, pressed["reservation"]))
        except Failure as error:
            return no_update, refusal(error)
        return pressed["at"], notice(
            "Reservation removed", "From the next round on its GPUs are anybody's."
        )


def body_of(values: Mapping[str, Any], *, now: str) -> RawBody:
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


def _place(_problem: FieldProblem) -> str:
    """Every field of the dialog is told of in one place below them."""
    return "error"


def reservations_table(reservations: Sequence[Mapping[str, Any]], *, may: bool) -> Any:
    """What is reserved now or will be, and for whom; with buttons for who may remove it."""
    if not reservations:
        return html.Div(
            "Nothing is reserved: every round may use all GPUs for anybody.", className="hint"
        )
    return html.Table(
        html.Tbody([_row(one, may=may) for one in reservations]), className="plain-table"
    )


def _row(one: Mapping[str, Any], *, may: bool) -> html.Tr:
    what = f"{one['gpu_count']} × {one['gpu_type']}"
    button = dmc.Button(
        "Remove",
        variant="subtle",
        size="compact-xs",
        **presses("cluster-remove-pressed", reservation=one["id"]),
        **aria(f"Remove the reservation of {what}"),
    )
    told = [
        dmc.Group(
            [gpu_chip(one["gpu_type"], what), html.Span("for"), html.Span(_whom(one))], gap=6
        ),
        html.Div(_when(one), className="caption"),
    ]
    return html.Tr([html.Td(told), html.Td(button if may else "", className="number")])


def _whom(one: Mapping[str, Any]) -> Any:
    """For whom; of another tenant no more than that."""
    if one["job_id"]:
        return (
            OTHER_JOB
            if is_other(one["job_id"])
            else dcc.Link("a job", href=f"/jobs/{one['job_id']}", title=one["job_id"])
        )
    return f"tenant {one['tenant']}" if one["tenant"] else "another tenant"


def _when(one: Mapping[str, Any]) -> str:
    begin = "" if one["state"] == "active" else f"from {clock(one['start_at'])} "
    end = "it is removed" if one["end_at"] is None else f"{clock(one['end_at'])} of cluster time"
    return f"{begin}until {end}"
