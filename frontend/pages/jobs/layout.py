"""The job list before its rows come: filters, counts, grid."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import link_button, page_title
from frontend.components.grid import grid
from frontend.components.labels import wrong_labels
from frontend.components.states import JOB_STATES, state_text
from frontend.pages.jobs.blocks import Filters
from frontend.pages.jobs.bulk import bulk_button, bulk_dialog
from frontend.pages.jobs.rows import columns_sorted
from frontend.routing import QueryValue, aria, query_value, query_values

BLOCK_ROWS = 100
LOADING_ROWS = 12  # shown until the first rows have come


def layout(
    q: QueryValue = None,
    state: QueryValue = None,
    model: QueryValue = None,
    gpu_type: QueryValue = None,
    label: QueryValue = None,
    sort: QueryValue = None,
    **_query: object,
) -> html.Div:
    filters: Filters = {
        "q": query_value(q) or None,
        "state": [name for name in query_values(state) if name in JOB_STATES],
        "model": query_values(model),
        "gpu_type": query_values(gpu_type),
        "label": [text for text in query_values(label) if not wrong_labels([text])],
    }
    counts = html.Div(
        id="jobs-counts",
        className="legend",
        style={"minHeight": "20px", "marginBottom": "8px"},
    )
    return html.Div(
        [
            page_title(
                "Jobs",
                bulk_button(),
                dmc.Button("Add demo jobs", id="jobs-demo", variant="default", size="xs"),
                link_button("Submit job", "/submit", variant="primary"),
                note=html.Span(id="jobs-total", className="caption"),
            ),
            dmc.Paper(
                [dmc.Group(_fields(filters), gap=8, mb=8), counts, _list(query_value(sort))],
                className="card",
                withBorder=True,
            ),
            *bulk_dialog(),
            dcc.Store(id="jobs-filters", data=dict(filters)),
            dcc.Store(id="jobs-cursors", data={}),
            dcc.Store(id="jobs-grid-id", data="jobs-grid"),
        ]
    )


def _fields(filters: Filters) -> list[Component]:
    """The fields that filter the list."""
    states = [{"value": name, "label": state_text(name)} for name in JOB_STATES]
    search = dmc.TextInput(
        id="jobs-search",
        value=filters["q"] or "",
        placeholder="Search name or id  ( / )",
        debounce=300,
        size="xs",
        w=240,
        **aria("Search jobs"),
    )
    clear = dmc.Button("Clear filters", id="jobs-clear", variant="subtle", size="xs")
    return [
        search,
        _choice("jobs-state", "State", states, filters["state"], width=150),
        _choice(
            "jobs-model", "Model", filters["model"], filters["model"], width=150, searchable=True
        ),
        _choice("jobs-type", "GPU type", filters["gpu_type"], filters["gpu_type"], width=130),
        dmc.TagsInput(
            id="jobs-label",
            value=filters["label"],
            placeholder="Label, such as team=vision",
            size="xs",
            miw=190,
            clearable=True,
            **aria("Labels"),
        ),
        clear,
    ]


def _choice(
    field_id: str,
    label: str,
    offered: list[dict[str, str]] | list[str],
    chosen: list[str],
    *,
    width: int,
    searchable: bool = False,
) -> dmc.MultiSelect:
    return dmc.MultiSelect(
        id=field_id,
        data=offered,
        value=chosen,
        placeholder=label,
        size="xs",
        miw=width,
        clearable=True,
        searchable=searchable,
        **aria(label),
    )


def _list(sort: str | None) -> html.Div:
    return grid(
        "jobs-grid",
        columns_sorted(sort),
        height="calc(100vh - 236px)",
        rowModelType="infinite",
        getRowId="params.data.id",
        options={
            "cacheBlockSize": BLOCK_ROWS,
            "maxBlocksInCache": 20,
            "infiniteInitialRowCount": LOADING_ROWS,
        },
    )
