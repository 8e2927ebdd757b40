"""The job list before its rows come: filters, counts, grid."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html

from frontend.components.cards import link_button, page_title, skeleton
from frontend.components.grid import grid
from frontend.components.replay import replay_link
from frontend.pages.jobs.blocks import BLOCK_ROWS, first_request
from frontend.pages.jobs.bulk import bulk_button, bulk_dialog
from frontend.pages.jobs.columns import chosen_columns, columns_menu, shown_columns
from frontend.pages.jobs.filters import filter_fields, filters_of
from frontend.pages.jobs.views import view_fields, views_dialog
from frontend.routing import QueryValue, query_value, query_values

LOADING_ROWS = 12  # shown until the first rows have come


def layout(sort: QueryValue = None, column: QueryValue = None, **query: QueryValue) -> html.Div:
    filters = filters_of(query)
    chosen = chosen_columns(query_values(column))
    counts = html.Div(
        id="jobs-counts",
        className="legend",
        style={"minHeight": "20px", "marginBottom": "8px"},
    )
    return html.Div(
        [
            page_title(
                "Jobs",
                *view_fields(),
                bulk_button(),
                replay_link(),
                dmc.Button("Add demo jobs", id="jobs-demo", variant="default", size="xs"),
                link_button("Submit job", "/submit", variant="primary"),
                note=html.Span(id="jobs-total", className="caption"),
            ),
            html.Div(skeleton(24), id="jobs-verdict", className="verdict sentence", role="status"),
            dmc.Paper(
                [
                    html.Div(
                        [*filter_fields(filters), columns_menu(chosen)], className="job-filters"
                    ),
                    counts,
                    _list(query_value(sort), chosen),
                ],
                className="card",
                withBorder=True,
            ),
            *bulk_dialog(),
            views_dialog(),
            dcc.Store(id="jobs-filters", data=dict(filters)),
            dcc.Store(id="jobs-cursors", data={}),
            dcc.Store(id="jobs-grid-id", data="jobs-grid"),
        ]
    )


def _list(sort: str | None, chosen: Sequence[str]) -> html.Div:
    columns = shown_columns(sort, chosen)
    return grid(
        "jobs-grid",
        columns,
        height="calc(100vh - 308px)",
        getRowsRequest=first_request(columns),
        rowModelType="infinite",
        getRowId="params.data.id",
        options={
            "cacheBlockSize": BLOCK_ROWS,
            "maxBlocksInCache": 20,
            "infiniteInitialRowCount": LOADING_ROWS,
            "autoSizePadding": 4,
            "ensureDomOrder": True,  # a column that is shown again is read in its place
        },
    )
