"""A bare page that draws what a page of Maat draws, with the same libraries, and nothing else.

Charts alone: one static page with Plotly's script and the figures. With grids: a Dash page with
the grids' rows and the same figures. Nothing of it is asked for again.

What Dash itself takes: a page of Dash and Mantine with the same script of libraries as Maat's
pages, either empty or with the same charts.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
import uvicorn
from dash import Dash, dcc, html
from dash_ag_grid import AgGrid
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.sync_api import Page

from benchmarks.service.bare import Alive
from benchmarks.service.real_server import await_answer, free_port
from frontend.scripts import CHARTS_PATH, LIBRARY, serve_charts_script, serve_libraries

CHART, ROW = ".js-plotly-plot .plot-container", ".ag-center-cols-container .ag-row"
_DRAWN = """() => {
    const plain = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
    const charts = [...document.querySelectorAll('.js-plotly-plot')]
        .filter(chart => chart.data && chart.data.length)
        .map(({data, layout, offsetHeight}) => ({data, layout, height: offsetHeight}));
    const grids = [...document.querySelectorAll('.ag-root-wrapper')].map(wrapper => {
        const { id, offsetHeight } = wrapper.closest('[id$="grid"], [id$="nodes"]');
        const rows = [], api = dash_ag_grid.getApi(id);
        api.forEachNode(node => { if (node.data) { rows.push(node.data); } });
        const columns = api.getColumnDefs().map(({field, headerName, width, flex}) =>
            ({field, headerName, width, flex}));
        return {rows, columns, height: offsetHeight};
    }).filter(grid => grid.rows.length);
    return JSON.parse(JSON.stringify({charts, grids}, plain));
}"""


@dataclass(frozen=True)
class Drawn:
    """`charts`: Plotly's data and layout; `grids`: rows and columns; both with height in pixels."""

    charts: list[dict[str, Any]]
    grids: list[dict[str, Any]]

    @property
    def wanted(self) -> list[tuple[str, int]]:
        """What shows that a page has drawn all this."""
        counts = [(CHART, len(self.charts)), (ROW, 1 if self.grids else 0)]
        return [one for one in counts if one[1]]


def drawn(page: Page) -> Drawn:
    """Read charts and grids off a page that shows its data."""
    found = page.evaluate(_DRAWN)
    return Drawn(found["charts"], found["grids"])


EMPTY_WANTED = [("#nothing", 1)]
"""What shows that the empty page of Dash is there."""


@contextmanager
def bare_page(shown: Drawn) -> Iterator[str]:
    """Serve it in a process of its own; yields its address."""
    with _served(_serve, shown) as url:
        yield url


@contextmanager
def dash_page(shown: Drawn | None) -> Iterator[str]:
    """Serve a page of Dash and Mantine with these charts; None: an empty one."""
    with _served(_serve_dash, shown) as url:
        yield url


@contextmanager
def _served(serve: Callable[[Any, int], None], shown: Drawn | None) -> Iterator[str]:
    port = free_port()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=serve, args=(shown, port), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{port}/"
    try:
        await_answer(url, Alive(process))
        yield url
    finally:
        process.kill()
        process.join()


def _serve(shown: Drawn, port: int) -> None:
    service = FastAPI()
    serve_charts_script(service)
    if shown.grids:
        pages = Dash(server=service, backend="fastapi", compress=True)  # type: ignore[arg-type]
        pages.layout = html.Div([*map(_graph, shown.charts), *map(_grid, shown.grids)])
    else:
        text = _static(shown.charts)
        service.add_api_route("/", lambda: HTMLResponse(text), methods=["GET"])
    uvicorn.run(service, port=port, log_level="warning")


class _OneScript(Dash):
    """Dash whose libraries are one script, as those of Maat's pages."""

    libraries = ""

    def index(self) -> str:
        html: str = super().index()  # type: ignore[no-untyped-call]
        script = f'<footer><script src="{self.libraries}"></script>'
        return LIBRARY.sub("", html).replace("<footer>", script)


def _serve_dash(shown: Drawn | None, port: int) -> None:
    service = FastAPI()
    serve_charts_script(service)
    pages = _OneScript(server=service, backend="fastapi", compress=True)  # type: ignore[arg-type]
    pages.libraries = serve_libraries(service, pages._generate_scripts_html())
    charts = [_graph(chart) for chart in shown.charts] if shown else []
    pages.layout = dmc.MantineProvider(html.Div(charts, id="nothing"))
    uvicorn.run(service, port=port, log_level="warning")


def _graph(chart: dict[str, Any]) -> dcc.Graph:
    figure = {"data": chart["data"], "layout": chart["layout"]}
    return dcc.Graph(figure=figure, style={"height": chart["height"]})


def _grid(grid: dict[str, Any]) -> AgGrid:
    return AgGrid(
        rowData=grid["rows"],
        columnDefs=grid["columns"],
        dashGridOptions={"rowHeight": 32, "headerHeight": 32, "animateRows": False},
        style={"height": grid["height"]},
    )


def _static(charts: list[dict[str, Any]]) -> str:
    places = "".join(
        f'<div id="chart-{at}" style="height:{chart["height"]}px"></div>'
        for at, chart in enumerate(charts)
    )
    text = json.dumps(charts).replace("<", "\\u003c")
    script = (
        f"{text}.forEach(({{data, layout}}, at) => "
        "Plotly.newPlot(`chart-${at}`, data, layout, {responsive: true}));"
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Bare</title></head>'
        f'<body>{places}<script src="{CHARTS_PATH}"></script>'
        f"<script>{script}</script></body></html>"
    )
