"""The frame around every page: navigation, cluster choice, freshness, colour scheme, keyboard help. Shows no data of its own but these."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update, page_container

from frontend.api import Api, Failure
from frontend.routing import aria, in_browser
from frontend.theme import MANTINE_THEME

HEARTBEAT_MILLISECONDS = 3000
NO_CLUSTER = "none"

NAVIGATION = (
    ("Overview", "/", "overview"),
    ("Cluster", "/cluster", "cluster"),
    ("Jobs", "/jobs", "jobs"),
    ("Submit", "/submit", "submit"),
    ("Rounds", "/rounds", "rounds"),
    ("Simulate", "/simulate", "simulate"),
    ("Sweeps", "/sweeps", "sweeps"),
    ("Measurements", "/measurements", "measurements"),
)
SHORTCUTS = (
    ("/", "Search jobs"),
    ("n", "New job"),
    ("g o", "Overview"),
    ("g c", "Cluster"),
    ("g j", "Jobs"),
    ("g r", "Rounds"),
    ("g s", "Simulate"),
    ("g w", "Sweeps"),
    ("g m", "Measurements"),
    ("?", "This help"),
)


def shell_layout() -> dmc.MantineProvider:
    """Everything but the page; the page stands in `page_container`."""
    return dmc.MantineProvider(
        id="mantine",
        theme=MANTINE_THEME,
        forceColorScheme="light",
        children=[
            html.A("Skip to content", href="#content", className="skip-link"),
            dcc.Location(id="navigate", refresh="callback-nav"),
            dcc.Location(id="here", refresh=False),
            dcc.Interval(id="heartbeat", interval=HEARTBEAT_MILLISECONDS),
            dcc.Store(id="live"),
            dcc.Store(id="scheme"),
            dcc.Store(id="nav-open", data=True, storage_type="local"),
            dmc.NotificationContainer(id="notices", position="bottom-right"),
            dmc.AppShell(
                id="app-shell",
                header={"height": 48},
                navbar={"width": 200, "breakpoint": 0},
                padding=0,
                transitionDuration=0,
                children=[
                    _header(),
                    _navbar(),
                    dmc.AppShellMain(html.Main(page_container, id="content", className="content", tabIndex=-1)),
                ],
            ),
            _help(),
        ],
    )


def _header() -> dmc.AppShellHeader:
    return dmc.AppShellHeader(
        dmc.Group(
            [
                dmc.Group(
                    [
                        html.Button(className="icon-button icon-menu", id="nav-toggle", n_clicks=0, **aria("Show or hide the navigation")),
                        dcc.Link([html.Span(className="mark"), "Maat"], href="/", className="brand"),
                        dmc.Select(
                            id="cluster-select",
                            data=[],
                            size="xs",
                            w=180,
                            allowDeselect=False,
                            persistence=True,
                            persistence_type="local",
                            **aria("Cluster"),
                        ),
                    ],
                    gap=12,
                ),
                dmc.Group(
                    [
                        html.Span(
                            [html.Span("●", className="fresh-glyph"), html.Span("connecting", id="freshness-text")],
                            id="freshness",
                            className="freshness waiting",
                            role="status",
                        ),
                        dmc.SegmentedControl(
                            id="scheme-choice",
                            data=[
                                {"value": "light", "label": "Light"},
                                {"value": "dark", "label": "Dark"},
                                {"value": "system", "label": "System"},
                            ],
                            value="system",
                            size="xs",
                            persistence=True,
                            persistence_type="local",
                        ),
                        html.Button("?", className="icon-button", id="help-open", n_clicks=0, **aria("Keyboard shortcuts")),
                    ],
                    gap=12,
                ),
            ],
            justify="space-between",
            h="100%",
            px=12,
            wrap="nowrap",
        )
    )


def _navbar() -> dmc.AppShellNavbar:
    links = [
        dcc.Link(
            [html.Span(className=f"icon icon-{icon}"), html.Span(label, className="nav-label")],
            href=path,
            id={"nav": icon},
            className="nav-link",
            title=label,
        )
        for label, path, icon in NAVIGATION
    ]
    docs = html.A(
        [html.Span(className="icon icon-docs"), html.Span("API", className="nav-label")],
        href="/docs",
        className="nav-link",
        title="API reference",
    )
    return dmc.AppShellNavbar(
        html.Nav([*links, html.Div(className="nav-space"), docs], className="nav", **aria("Pages")), id="navbar", withBorder=True
    )


def _help() -> dmc.Modal:
    rows = [html.Tr([html.Td([dmc.Kbd(key) for key in keys.split()]), html.Td(what)]) for keys, what in SHORTCUTS]
    return dmc.Modal(
        id="help",
        title="Keyboard shortcuts",
        children=html.Table(html.Tbody(rows), className="shortcuts"),
        size="sm",
        transitionProps={"duration": 0},
    )


def register_shell(app: Dash, api: Api) -> None:
    """The callbacks of the frame. What needs no data runs in the browser (assets/maat.js)."""
    in_browser(
        app,
        "scheme",
        Output("mantine", "forceColorScheme"),
        Output("scheme", "data"),
        Input("scheme-choice", "value"),
    )
    in_browser(
        app,
        "heartbeat",
        Output("live", "data"),
        Output("freshness-text", "children"),
        Output("freshness", "className"),
        Input("heartbeat", "n_intervals"),
        State("live", "data"),
    )
    in_browser(
        app,
        "toggleNavigation",
        Output("nav-open", "data"),
        Input("nav-toggle", "n_clicks"),
        State("nav-open", "data"),
        prevent_initial_call=True,
    )
    in_browser(app, "navigation", Output("app-shell", "navbar"), Output("navbar", "className"), Input("nav-open", "data"))
    in_browser(
        app,
        "markHere",
        *[Output({"nav": icon}, "className") for _, _, icon in NAVIGATION],
        Input("here", "pathname"),
    )
    in_browser(app, "openHelp", Output("help", "opened"), Input("help-open", "n_clicks"), prevent_initial_call=True)

    @app.callback(
        Output("cluster-select", "data"),
        Output("cluster-select", "value"),
        Input("live", "data"),
        State("cluster-select", "data"),
        State("cluster-select", "value"),
    )
    async def offer_clusters(_live: Any, offered: list[dict[str, str]] | None, chosen: str | None) -> tuple[Any, Any]:
        """The clusters there are; the one chosen before, if it is still among them."""
        try:
            async with api.visitor() as maat:
                clusters = await maat.clusters()
        except Failure:
            return no_update, no_update
        data = [{"value": cluster["id"], "label": cluster["name"]} for cluster in clusters]
        known = [cluster["id"] for cluster in clusters]
        value = chosen if chosen in known else (known[0] if known else NO_CLUSTER)
        return (no_update if data == offered else data), (no_update if value == chosen else value)
