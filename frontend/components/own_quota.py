"""What the visitor's own team holds of its quota: a card of their account."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state
from frontend.components.quota_bar import LEGEND, quota_bar, quota_words
from frontend.shell import NO_CLUSTER
from maat.api.quotas import QuotaOut, QuotaPage

WITHOUT = "Your team has no quota on this cluster: its jobs may hold all GPUs."


def own_quota_card(card_id: str, *, className: str) -> Component:
    return card("Your team's quota", html.Div(id=card_id), className=className)


def register_own_quota(app: Dash, api: Api, card_id: str) -> None:
    answer(
        app,
        partial(show_own_quota, api),
        output={"quota": Output(card_id, "children")},
        inputs={"_live": Input("live", "data"), "cluster_id": Input("cluster-select", "value")},
    )


async def show_own_quota(api: Api, *, _live: object, cluster_id: str | None) -> Changes:
    if cluster_id in (None, NO_CLUSTER):
        return NOTHING
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            found = await maat.quotas(str(cluster_id))
    except Failure as error:
        return {"quota": error_state(error)}
    return {"quota": own_quota(found, tenant=me["tenant"])}


def own_quota(found: QuotaPage, *, tenant: str) -> Component:
    """One line for each GPU type on which the tenant has a quota."""
    own = [one for one in found["items"] if one["tenant"] == tenant]
    if not own:
        return html.Div(WITHOUT, className="hint")
    gpus = {one["gpu_type"]: one["gpus"] for one in found["gpu_types"]}
    rows = [_row(one, gpus=gpus.get(one["gpu_type"], 0)) for one in own]
    table = html.Table(html.Tbody(rows), className="plain-table")
    return html.Div([table, html.Div(LEGEND, className="hint")])


def _row(one: QuotaOut, *, gpus: int) -> html.Tr:
    words = [quota_words(one, gpus=gpus)]
    if one["borrowed"] and one["guaranteed"]:
        words.append(f"{one['borrowed']} borrowed")
    if one["lent"]:
        words.append(f"{one['lent']} lent to others")
    return html.Tr(
        [html.Td(quota_bar(one, gpus=gpus)), html.Td(", ".join(words), className="wraps narrow")]
    )
