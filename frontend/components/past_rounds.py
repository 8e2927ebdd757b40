"""The cluster in past rounds: a slider over the rounds, and what it shows of one.

The round is in the address; without one, the present is shown. assets/past_rounds.js moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.addresses import address_note
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import in_browser
from frontend.formatting import clock, count
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.client import ApiError, AsyncClient, calls

CHOSEN = Input("past-round", "data")
BOUNDS = Output("past-bounds", "data")
WHEN = Output("past-when", "children")


class Bounds(TypedDict):
    """The numbers of the oldest round that is kept, and of the latest."""

    first: int
    latest: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The state that is shown; `absent`: a note, if there is no round of the number asked for."""

    state: ClusterStateOut
    absent: html.Div | None = None


def stepper(asked: str | None) -> html.Div:
    """Slider and buttons. `asked`: the round of the address."""
    past = int(asked) if asked and asked.isascii() and asked.isdecimal() else None
    slider = dmc.Slider(
        id="past-slider",
        min=1,
        max=2,
        value=2,
        size="sm",
        label=None,
        className="past-slider",
        thumbLabel="Round",
    )
    return html.Div(
        [
            dcc.Store(id="past-round", data=past),
            dcc.Store(id="past-bounds"),
            _button("past-back", "◀", "The round before"),
            slider,
            _button("past-on", "▶", "The round after"),
            _button("past-now", "Now", "The cluster as it stands"),
            html.Span(id="past-when", className="caption past-when", role="status"),
        ],
        id="past-stepper",
        className="past-stepper",
        style=HIDDEN,
        role="group",
        **aria("Rounds"),
    )


def _button(button_id: str, text: str, words: str) -> html.Button:
    return html.Button(
        text, id=button_id, type="button", className="chart-tool", title=words, **aria(words)
    )


def register(app: Dash) -> None:
    """Let slider, buttons, address and the round that is shown follow each other."""
    in_browser(
        app,
        "chooseRound",
        Output("past-round", "data"),
        Input("past-slider", "value"),
        Input("past-back", "n_clicks"),
        Input("past-on", "n_clicks"),
        Input("past-now", "n_clicks"),
        State("past-round", "data"),
        State("past-bounds", "data"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "followRound",
        Output("past-slider", "min"),
        Output("past-slider", "max"),
        Output("past-slider", "value"),
        Output("past-stepper", "style"),
        Input("past-round", "data"),
        Input("past-bounds", "data"),
        prevent_initial_call=True,
    )


async def state_of(maat: AsyncClient, cluster_id: str, past: int | None) -> Seen:
    """Return the state in a round. If there is none of this number: of now, and a note on it."""
    if past is not None:
        try:
            return Seen(await maat.send(calls.cluster_state(cluster_id, round=past)))
        except ApiError as error:
            if error.status not in (404, 422):
                raise
    note = None
    if past is not None:
        sentence = f"There is no round {past} of this cluster: it has not run yet, or was pruned."
        note = address_note([sentence], "/cluster", "The cluster now")
    return Seen(await maat.send(calls.cluster_state(cluster_id)), note)


def bounds_of(cluster: ClusterOut) -> Bounds | None:
    """Return the rounds that there are; None before the first."""
    latest = cluster["latest_round"]
    if latest is None:
        return None
    return Bounds(first=max(1, latest - cluster["keep_rounds"] + 1), latest=latest)


def when_of(state: ClusterStateOut, past: int | None) -> str:
    """Say which moment is shown. `past`: the past round, None for the present."""
    number = state["round_number"]
    if past is None or number is None:
        return "" if number is None else f"Now: round {count(number)}"
    at = clock(state["as_of"]) if state["as_of"] else ""
    return f"Round {count(number)}, {at} of cluster time, on the nodes of today"
