"""The price of each GPU type, round by round: what made a type scarce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from frontend.figures.links import leads_to, round_address, zooms
from maat.api.rounds import RoundOut
from maat.colours import gpu_colour, gpu_order
from maat.figures.base import empty_figure, figure, label_or_legend, rule, step_line
from maat.figures.texts import escape

_CAPACITY = "capacity:"
NO_PRICE = 1e-6  # what rounding leaves of the price of a type that is not scarce


def prices_by_type(prices: Mapping[str, float | None]) -> dict[str, float]:
    """Return the prices of GPU types among those of all limits.

    `capacity:a100` is the limit of the capacity of a100.
    """
    return {
        name.removeprefix(_CAPACITY): price
        for name, price in prices.items()
        if price is not None and (name.startswith(_CAPACITY) or ":" not in name)
    }


def prices_figure(
    rounds: Sequence[RoundOut], *, scheme: str | None, shown: str | None = None
) -> go.Figure:
    """Step lines: round x price (objective per GPU), one per GPU type, from rounds in any order.

    `shown`: the number of the round that is marked, if it is among them.
    """
    priced = sorted((entry["number"], prices_by_type(entry["prices"] or {})) for entry in rounds)
    priced = [(number, prices) for number, prices in priced if prices]
    types = gpu_order(name for _, prices in priced for name in prices)
    if not types:
        return empty_figure(
            scheme,
            "No prices yet",
            "Policies that solve a programme give one price per GPU type and round.",
        )
    drawn = figure(scheme, x="Round", y="Price (objective per GPU)")
    numbers = [number for number, _ in priced]
    ends, highest = {}, 0.0
    for name in types:
        values = [prices.get(name) for _, prices in priced]
        line = step_line(
            name,
            numbers,
            values,
            colour=gpu_colour(name),
            hovertemplate="%{y:.4g} " + escape(name) + "<extra></extra>",
        )
        drawn.add_trace(leads_to(line, [round_address(int(x)) for x in line.x]))
        known = [value for value in values if value is not None]
        ends[name] = (numbers[-1], known[-1], gpu_colour(name))
        highest = max([highest, *known])
    scarce = highest > NO_PRICE
    drawn.update_yaxes(**({"rangemode": "tozero"} if scarce else {"range": [0, 1]}))
    label_or_legend(
        drawn, scheme, ends, span=highest if scarce else 1.0, x=(numbers[0], numbers[-1])
    )
    if shown is not None and shown in map(str, numbers):
        rule(drawn, scheme, x=float(shown), text="")
    return zooms(drawn)
