"""The page of those who run a service, in tabs: a module for each card."""

from __future__ import annotations

from dash import Dash, html

from frontend.addresses import add_page, among
from frontend.api import Api
from frontend.components.cards import link_button, page_title
from frontend.pages.admin import (
    audit,
    clusters,
    health,
    new_cluster,
    nodes,
    policy,
    quotas,
    shared_models,
    tenants,
    tokens,
    users,
    webhooks,
    weights,
)
from frontend.routing import QueryValue, query_value

TABS = {
    "accounts": ("Accounts", (users, tenants, shared_models, tokens)),
    "clusters": ("Clusters", (clusters, nodes, policy, new_cluster)),
    "quotas": ("Quotas", (quotas, weights)),
    "webhooks": ("Webhooks", (webhooks,)),
    "health": ("Health", (health,)),
    "audit": ("Audit", (audit,)),
}


def layout(tab: QueryValue = None, **_query: object) -> html.Div:
    chosen = query_value(tab) or "accounts"
    shown = chosen if chosen in TABS else "accounts"
    links = [
        link_button(words, f"/admin?tab={name}", variant="primary" if name == shown else "default")
        for name, (words, _) in TABS.items()
    ]
    parts = [part.cards() for part in TABS[shown][1]]
    return html.Div([page_title("Admin", *links), html.Div(parts)])


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/admin",
        title="Admin",
        layout=layout,
        takes={"tab": among("part", TABS)},
    )
    for _, parts in TABS.values():
        for part in parts:
            part.register(app, api)
