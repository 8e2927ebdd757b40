"""The choice of the period of a report: a named one, or the days from one to another.

The choice is kept in the page's address. Days are those of the cluster's calendar, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output
from dash.development.base_component import Component

from frontend.addresses import Check, among, quoted
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import in_browser
from frontend.routing import QueryValue, query_value
from maat.api.periods import PeriodName
from maat.client.calls import PeriodAsked

DEFAULT = PeriodName.THIS_WEEK.value
DAYS = "days"
LABELS: Mapping[str, str] = {
    **{name.value: name.value.replace("-", " ").capitalize() for name in PeriodName},
    DAYS: "From … to …",
}


def period_choice(page: str, query: Mapping[str, QueryValue]) -> list[Component]:
    """The selector, and the calendar that is shown while days are chosen."""
    first, last = (_day(query_value(query.get(name))) for name in ("from", "to"))
    chosen = query_value(query.get("period"))
    # An address with one of both means that day alone.
    days = [day and day.isoformat() for day in (first or last, last or first)]
    value = DAYS if first or last else chosen if chosen in LABELS else DEFAULT
    select = dmc.Select(
        id=f"{page}-period",
        data=[{"value": name, "label": label} for name, label in LABELS.items()],
        value=value,
        allowDeselect=False,
        size="xs",
        w=130,
        **aria("Period"),
    )
    calendar = dmc.DatePickerInput(
        id=f"{page}-days",
        type="range",
        value=days,
        allowSingleDateInRange=True,
        valueFormat="D MMM YYYY",
        placeholder="first and last day",
        size="xs",
        w=200,
        style={} if value == DAYS else HIDDEN,
        **aria("First and last day, in cluster time"),
    )
    return [select, calendar]


def period_parameters() -> dict[str, Check]:
    """The parameters of the page's address, each with its check."""
    return {"period": among("period", LABELS), "from": _is_day, "to": _is_day}


def period_inputs(page: str) -> dict[str, Any]:
    return {"period": Input(f"{page}-period", "value"), "days": Input(f"{page}-days", "value")}


def register_period(app: Dash, page: str) -> None:
    in_browser(
        app,
        "periodInUrl",
        Output(f"{page}-days", "style"),
        Input(f"{page}-period", "value"),
        Input(f"{page}-days", "value"),
        prevent_initial_call=True,
    )


def asked_period(
    cluster_id: str, period: str, days: Sequence[str | None] | None
) -> PeriodAsked | None:
    """What to ask the service for; None while a day is still to be chosen."""
    if period != DAYS:
        return {"cluster": cluster_id, "period": period}
    chosen = [_day(day) for day in days or ()]
    if len(chosen) != 2 or chosen[0] is None or chosen[1] is None:
        return None
    first, last = chosen[0], chosen[1] + timedelta(days=1)
    return {"cluster": cluster_id, "start": _midnight(first), "end": _midnight(last)}


def _midnight(day: date) -> str:
    return datetime.combine(day, time(), UTC).isoformat()


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text[:10])
    except ValueError:
        return None


def _is_day(value: str) -> str | None:
    if len(value) == 10 and _day(value) is not None:
        return None
    return f"{quoted(value)} is no day. Write it as 2026-11-20."
