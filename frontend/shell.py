"""The frame of every page: navigation, cluster, freshness, colour scheme, keyboard help."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import TypeAlias

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, dcc, html, page_container
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import Changes, answer, in_browser
from frontend.components.cards import error_state, link_button
from frontend.components.dialogs import dialog
from frontend.components.samples import samples
from frontend.theme import MANTINE_THEME
from frontend.visitors import (
    MAY_ADMINISTER,
    is_signed_out,
    register_visitor,
    rights_note,
    visitor_parts,
    visitor_stores,
)
from maat.api.clusters import ClusterOut
from maat.api.service import MeOut
from maat.client import Unreachable

HEARTBEAT_MILLISECONDS = 3000
NO_CLUSTER = "none"
NARROW_PIXELS = (
    900  # as in assets/maat.css and navigation.js: below, the navigation lies over the page
)

NAVIGATION = (
    ("Overview", "/", "overview"),
    ("Cluster", "/cluster", "cluster"),
    ("Jobs", "/jobs", "jobs"),
    ("Submit", "/submit", "submit"),
    ("Rounds", "/rounds", "rounds"),
    ("Usage & cost", "/usage", "usage"),
    ("Fairness", "/fairness", "fairness"),
    ("Reports", "/reports", "reports"),
    ("Simulate", "/simulate", "simulate"),
    ("Sweeps", "/sweeps", "sweeps"),
    ("Experiments", "/experiments", "experiments"),
    ("Measurements", "/measurements", "measurements"),
    ("Papers", "/papers", "papers"),
    ("Admin", "/admin", "admin"),
    ("Help", "/help", "help"),
)
AT_THE_FOOT = ("/help",)
ONLY_FOR_SOME = ("/admin",)  # shown once it is known that the visitor may open them
Choices: TypeAlias = list[dict[str, str]]
"""Clusters to choose from, each by its `value`, an id, and its `label`."""
SCHEMES = (("light", "Light"), ("dark", "Dark"), ("system", "System"))
SHORTCUTS = (
    ("/", "Search jobs"),
    ("n", "New job"),
    ("g o", "Overview"),
    ("g c", "Cluster"),
    ("g j", "Jobs"),
    ("g r", "Rounds"),
    ("g u", "Usage & cost"),
    ("g f", "Fairness"),
    ("g p", "Reports"),
    ("g s", "Simulate"),
    ("g w", "Sweeps"),
    ("g e", "Experiments"),
    ("g m", "Measurements"),
    ("g l", "Papers"),
    ("g a", "Account"),
    ("g h", "Help: the terms"),
    ("Enter", "Open the row or the GPUs under the focus"),
    ("?", "This help"),
)


def shell_layout(
    page: Component | None = None,
    title: str | None = None,
    *,
    path: str | None = None,
    clusters: list[ClusterOut] | None = None,
    me: MeOut | None = None,
) -> dmc.MantineProvider:
    """The frame, with a page and its title in it. Without one, Dash's router fills it.

    `path`: of the page. `clusters`, `me`: what the visitor sees, and who that is; None: a callback
    asks for it.
    """
    offered = None if clusters is None else choices_of(clusters)
    container = deepcopy(page_container)  # Dash's own is shared by all who ask
    container["_pages_content"].children = page
    container["_pages_store"].data = {"title": title} if title else None
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
            dcc.Store(id="clusters", data=offered),
            *visitor_stores(known=me is not None),
            dcc.Store(id="scheme"),
            dcc.Store(id="nav-open", data=True, storage_type="local"),
            dcc.Store(id="nav-over", data=False),
            dmc.NotificationContainer(id="notices", position="bottom-right"),
            dmc.AppShell(
                id="app-shell",
                header={"height": 48},
                navbar={"width": 200, "breakpoint": NARROW_PIXELS, "collapsed": {"mobile": True}},
                padding=0,
                transitionDuration=0,
                children=[
                    _header(offered or [], me),
                    _navbar(me),
                    dmc.AppShellMain(
                        html.Div(
                            [*_notes(me, path), container],
                            id="content",
                            className="content",
                            tabIndex=-1,
                        )
                    ),
                ],
            ),
            _help(),
            *samples(),
        ],
    )


def _notes(me: MeOut | None, path: str | None) -> list[Component]:
    """What may stand above a page; all empty or hidden in most cases."""
    return [
        _frame_problem(),
        _away(),
        _stale_note(),
        rights_note(me, path),
        _no_such_cluster(),
    ]


def _frame_problem() -> html.Div:
    """Says why no page can show a cluster, while nobody knows which there are; empty otherwise."""
    return html.Div(id="frame-problem")


def _away() -> html.Div:
    """Says that the service is away, and what has not come; hidden otherwise (assets/away.js)."""
    missing = html.Div(id="away-missing")
    told: list[Component] = [error_state(Unreachable()), missing]
    return html.Div(told, id="away", className="address-note", hidden=True)


def _no_such_cluster() -> html.Div:
    """Stands in place of a page whose address names an unknown cluster; hidden otherwise."""
    title: list[str | Component] = ["⚠ There is no cluster ", html.Span(id="no-such-cluster-name")]
    remedy = "It was removed, or its id or name is mistyped. These clusters there are:"
    links = html.Div(id="no-such-cluster-links", className="actions")
    told: list[Component] = [
        html.Div(title, className="state-title"),
        html.Div(remedy, className="hint"),
        links,
    ]
    return html.Div(told, id="no-such-cluster", className="address-note", role="alert", hidden=True)


def _stale_note() -> html.Div:
    """Says of which moment the data is, while it is not of now; empty otherwise."""
    return html.Div(id="stale-note", className="stale-note", role="status")


def _header(offered: Choices, me: MeOut | None) -> dmc.AppShellHeader:
    return dmc.AppShellHeader(
        dmc.Group(
            [
                dmc.Group(_header_left(offered), gap=12, wrap="nowrap", className="header-left"),
                dmc.Group(_header_right(me), gap=12, wrap="nowrap"),
            ],
            justify="space-between",
            gap=8,
            h="100%",
            px=12,
            wrap="nowrap",
        )
    )


def _header_left(offered: Choices) -> list[Component]:
    """The button of the navigation, the brand, and the choice of the cluster."""
    toggle = html.Button(
        className="icon-button icon-menu",
        id="nav-toggle",
        n_clicks=0,
        **aria("Show or hide the navigation"),
    )
    brand = [html.Span(className="mark"), html.Span("Maat", className="brand-name")]
    clusters = dmc.Select(
        id="cluster-select",
        data=offered,
        size="xs",
        className="cluster-select",
        allowDeselect=False,
        style=HIDDEN,
        **aria("Cluster"),
    )
    return [toggle, dcc.Link(brand, href="/", className="brand"), clusters]


def _header_right(me: MeOut | None) -> list[Component]:
    """How fresh the data is, the choice of the colours, and the way to the help."""
    fresh = [
        html.Span("●", className="fresh-glyph"),
        html.Span("connecting", id="freshness-text"),
    ]
    schemes = dmc.SegmentedControl(
        id="scheme-choice",
        data=[{"value": value, "label": _icon(value, words)} for value, words in SCHEMES],
        value="system",
        size="xs",
        persistence=True,
        persistence_type="local",
        className="scheme-choice",
        **aria("Colours"),
    )
    helps = html.Button(
        "?",
        className="icon-button help-button",
        id="help-open",
        n_clicks=0,
        **aria("Keyboard shortcuts and help"),
    )
    return [
        html.Span(fresh, id="freshness", className="freshness waiting", role="status"),
        *visitor_parts(me),
        schemes,
        helps,
    ]


def _icon(shape: str, words: str) -> html.Span:
    """A word that shows as a picture."""
    return html.Span(
        [html.Span(className=f"icon icon-{shape}"), html.Span(words, className="unseen")],
        title=words,
    )


def _navbar(me: MeOut | None) -> dmc.AppShellNavbar:
    may_administer = me is not None and MAY_ADMINISTER in me["permissions"]
    links = {
        path: dcc.Link(
            [html.Span(className=f"icon icon-{icon}"), html.Span(label, className="nav-label")],
            href=path,
            id={"nav": icon, "to": path},
            className="nav-link",
            title=label,
            style=HIDDEN if path in ONLY_FOR_SOME and not may_administer else None,
        )
        for label, path, icon in NAVIGATION
    }
    foot = [links.pop(path) for path in AT_THE_FOOT]
    docs = html.A(
        [html.Span(className="icon icon-docs"), html.Span("API", className="nav-label")],
        href="/docs",
        className="nav-link",
        title="API reference",
    )
    return dmc.AppShellNavbar(
        html.Nav(
            [*links.values(), html.Div(className="nav-space"), *foot, docs],
            className="nav",
            **aria("Pages"),
        ),
        id="navbar",
        className="navbar-away",
        withBorder=True,
    )


def _help() -> dmc.Modal:
    rows = [
        html.Tr([html.Td([dmc.Kbd(key) for key in keys.split()]), html.Td(what)])
        for keys, what in SHORTCUTS
    ]
    tour = html.Button(
        "What am I looking at?", id="tour-open", className="button-link primary", type="button"
    )
    terms = link_button("Terms and formulas", "/help")
    keys = html.Table(html.Tbody(rows), className="shortcuts")
    ways = html.Div([tour, terms], className="actions help-ways")
    return dialog("help", "Keyboard shortcuts and help", [ways, keys], size="sm")


def register_shell(app: Dash, api: Api) -> None:
    """Register the callbacks of the frame. What needs no data runs in the browser.

    Those that do not run at first find the frame as they would leave it (assets/first_visit.js).
    """
    _register_frame(app)
    _register_clusters(app)
    answer(
        app,
        partial(offer_clusters, api),
        output={
            "choices": Output("cluster-select", "data"),
            "clusters": Output("clusters", "data"),
            "problem": Output("frame-problem", "children"),
            "over": Output("signed-out-since", "data"),
        },
        inputs={"_live": Input("live", "data")},
        state={"offered": State("clusters", "data")},
        prevent_initial_call=True,  # without them in the HTML, the first beat asks
    )
    register_visitor(app, api)


def _register_frame(app: Dash) -> None:
    """Register colours, freshness, navigation and help."""
    in_browser(
        app,
        "scheme",
        Output("mantine", "forceColorScheme"),
        Output("scheme", "data"),
        Input("scheme-choice", "value"),
        State("scheme", "data"),
    )
    in_browser(
        app,
        "heartbeat",
        Output("freshness-text", "children"),
        Output("freshness", "className"),
        Output("stale-note", "children"),
        Output("away", "hidden"),
        Output("away-missing", "children"),
        Input("heartbeat", "n_intervals"),
        State("live", "data"),
    )
    in_browser(
        app,
        "toggleNavigation",
        Output("nav-open", "data"),
        Output("nav-over", "data"),
        Input("nav-toggle", "n_clicks"),
        Input("here", "pathname"),
        State("nav-open", "data"),
        State("nav-over", "data"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "navigation",
        Output("app-shell", "navbar"),
        Output("navbar", "className"),
        Input("nav-open", "data"),
        Input("nav-over", "data"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "markHere",
        *[Output({"nav": icon, "to": path}, "className") for _, path, icon in NAVIGATION],
        Input("here", "pathname"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "openHelp",
        Output("help", "opened"),
        Input("help-open", "n_clicks"),
        prevent_initial_call=True,
    )


def _register_clusters(app: Dash) -> None:
    """Register the choice of the cluster, and the links that follow it (assets/address.js)."""
    in_browser(
        app,
        "clusterOf",
        Output("cluster-select", "value"),
        Output("cluster-select", "style"),
        Input("clusters", "data"),
        State("cluster-select", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "clusterInUrl",
        Output("cluster-select", "id"),
        Input("cluster-select", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "unknownCluster",
        Output("no-such-cluster", "hidden"),
        Output("no-such-cluster-name", "children"),
        Output("no-such-cluster-links", "children"),
        Input("cluster-select", "value"),
        Input("clusters", "data"),
        Input("here", "pathname"),
    )
    in_browser(
        app,
        "clusterLinks",
        *[Output({"nav": icon, "to": path}, "href") for _, path, icon in NAVIGATION],
        Input("cluster-select", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "pageLinks",
        Output({"to": ALL, "words": ALL}, "href"),
        Input("cluster-select", "value"),
    )


async def offer_clusters(
    api: Api, *, _live: object, offered: list[dict[str, str]] | None
) -> Changes:
    """Offer the clusters there are. assets/address.js chooses which one is shown."""
    try:
        async with api.visitor() as maat:
            clusters = await maat.clusters()
    except Failure as error:
        if is_signed_out(error):  # the browser is led to the page for it
            return {"problem": None, "over": True}
        return {"problem": error_state(error) if offered is None else None}
    data = choices_of(clusters)
    if data == offered:
        return {"problem": None}
    return {"choices": data, "clusters": data, "problem": None}


def choices_of(clusters: list[ClusterOut]) -> Choices:
    return [{"value": cluster["id"], "label": cluster["name"]} for cluster in clusters]
