"""The filters of the job list: their fields, and what they are in the address and for the service.

Days are of the cluster's calendar, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypedDict, cast

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.addresses import Check, among, anything, quoted
from frontend.attributes import aria
from frontend.components.labels import wrong_labels
from frontend.components.states import JOB_STATES, state_text
from frontend.routing import QueryValue, query_value, query_values


class Filters(TypedDict):
    """The filters of the page; None and empty lists keep all jobs. Days are such as 2026-11-20."""

    q: str | None
    state: list[str]
    model: list[str]
    gpu_type: list[str]
    tenant: list[str]
    owner: str | None
    first: str | None
    last: str | None
    label: list[str]


# Filter -> its name in the address, and in the sentence that says what a list is filtered by.
NAMES: Mapping[str, str] = {name: name for name in Filters.__annotations__} | {
    "first": "from",
    "last": "to",
}


def is_day(value: str) -> str | None:
    wrong = f"{quoted(value)} is no day. Write it as 2026-11-20."
    return None if len(value) == 10 and _day(value) is not None else wrong


TAKES: Mapping[str, Check] = {
    **{NAMES[name]: anything for name in Filters.__annotations__},
    "state": among("job state", JOB_STATES),
    "from": is_day,
    "to": is_day,
}


def filters_of(query: Mapping[str, QueryValue]) -> Filters:
    """Return the filters of an address; what is not understood is left out."""
    first, last = (_day(query_value(query.get(name))) for name in ("from", "to"))
    return {
        "q": query_value(query.get("q")) or None,
        "state": [name for name in query_values(query.get("state")) if name in JOB_STATES],
        "model": query_values(query.get("model")),
        "gpu_type": query_values(query.get("gpu_type")),
        "tenant": query_values(query.get("tenant")),
        "owner": query_value(query.get("owner")) or None,
        "first": None if first is None else first.isoformat(),
        "last": None if last is None else last.isoformat(),
        "label": [text for text in query_values(query.get("label")) if not wrong_labels([text])],
    }


def in_address(filters: Filters) -> dict[str, QueryValue]:
    """Return the filters as parameters of the page's address."""
    return {NAMES[name]: cast(QueryValue, value) for name, value in filters.items()}


def asked(filters: Filters) -> dict[str, Any]:
    """Return the filters as the service takes them, without empty ones."""
    kept = {
        name: value for name, value in filters.items() if value and name not in ("first", "last")
    }
    first, last = _day(filters["first"]), _day(filters["last"])
    if first is not None:  # the service leaves out the moment itself
        kept["submitted_after"] = _midnight(first, before=True)
    if last is not None:
        kept["submitted_before"] = _midnight(last + timedelta(days=1))
    return kept


def used_words(filters: Filters) -> list[str]:
    """Return each filter that is used, in words."""
    return [
        f"{_words(name)} {value if isinstance(value, str) else ' or '.join(value)}"
        for name, value in filters.items()
        if isinstance(value, str | list) and value
    ]


def _words(name: str) -> str:
    return "name or id" if name == "q" else NAMES[name].replace("_", " ")


def filter_fields(filters: Filters) -> list[Component]:
    """Return the fields: what most look for, then what narrows it down."""
    states = [{"value": name, "label": state_text(name)} for name in JOB_STATES]
    search = dmc.TextInput(
        id="jobs-search",
        value=filters["q"] or "",
        placeholder="Search name or id  ( / )",
        debounce=300,
        size="xs",
        **aria("Search jobs"),
    )
    days = dmc.DatePickerInput(
        id="jobs-days",
        type="range",
        value=[filters["first"], filters["last"]],
        allowSingleDateInRange=True,
        valueFormat="D MMM YYYY",
        placeholder="Submitted from … to …",
        size="xs",
        clearable=True,
        **aria("Submitted, first and last day in cluster time"),
    )
    owner = dmc.Autocomplete(
        id="jobs-owner",
        data=[],
        value=filters["owner"] or "",
        placeholder="Owner",
        debounce=300,
        size="xs",
        clearable=True,
        comboboxProps={"transitionProps": {"duration": 0}},
        **aria("Owner"),
    )
    labels = dmc.TagsInput(
        id="jobs-label",
        value=filters["label"],
        placeholder="Label: team=vision",
        size="xs",
        clearable=True,
        **aria("Labels"),
    )
    tenants = _choice(
        "jobs-tenant", "Tenant", filters["tenant"], filters["tenant"], searchable=True
    )
    clear = dmc.Button("Clear filters", id="jobs-clear", variant="subtle", size="xs")
    return [
        search,
        _choice("jobs-state", "State", states, filters["state"]),
        _choice("jobs-model", "Model", filters["model"], filters["model"], searchable=True),
        _choice("jobs-type", "GPU type", filters["gpu_type"], filters["gpu_type"]),
        html.Div(tenants, id="jobs-tenant-box"),
        owner,
        days,
        labels,
        clear,
    ]


def _choice(
    field_id: str,
    label: str,
    offered: list[dict[str, str]] | list[str],
    chosen: list[str],
    *,
    searchable: bool = False,
) -> dmc.MultiSelect:
    return dmc.MultiSelect(
        id=field_id,
        data=offered,
        value=chosen,
        placeholder=label,
        size="xs",
        clearable=True,
        searchable=searchable,
        **aria(label),
    )


def _midnight(day: date, *, before: bool = False) -> str:
    """Return the begin of a day; `before`: the millisecond before it."""
    moment = datetime.combine(day, time(), UTC)
    return (moment - timedelta(milliseconds=1) if before else moment).isoformat()


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text[:10])
    except ValueError:
        return None
