"""The tables of webhooks and of the messages of one."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.attributes import aria, click_target
from frontend.components.cards import empty_state
from frontend.components.names import cut_name
from frontend.components.states import state_chip
from frontend.formatting import clock, plural
from frontend.pages.admin.webhook_dialog import EVENT_WORDS, pressed_for
from maat.api.webhooks import WebhookDeliveryOut, WebhookMadeOut, WebhookOut

PRESSED = "admin-webhook-pressed"


def webhook_table(webhooks: Sequence[WebhookOut], *, may: bool) -> Component:
    if not webhooks:
        return empty_state(
            "No webhook", "A webhook is told when jobs end or fail, and when clusters do."
        )
    names = ("Name", "Tells when", "Of", "State", "")
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    rows = [_row(one, may=may) for one in webhooks]
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _row(one: WebhookOut, *, may: bool) -> html.Tr:
    told = [html.B(cut_name(one["name"])), html.Div(one["url"], className="caption breaks")]
    events = ", ".join(EVENT_WORDS[event] for event in one["events"])
    whose = f"{one['tenant'] or 'all tenants'}, {one['cluster'] or 'all clusters'}"
    cells: list[str | Component | list[Component]] = [
        html.Div(told),
        html.Div(events, className="caption"),
        whose,
        html.Div([html.Div(words) for words in _standing(one)]),
        _buttons(one, may=may),
    ]
    return html.Tr([html.Td(cell, className="wraps") for cell in cells])


def _standing(one: WebhookOut) -> list[str]:
    """Say whether it is active, what waits, and since how many tries nothing has arrived."""
    words = ["active" if one["active"] else "paused"]
    if one["waiting"]:
        words.append(f"{plural(one['waiting'], 'message')} on the way")
    if one["failures"]:
        words.append(f"{plural(one['failures'], 'try', 'tries')} failed since one arrived")
    return words


def _buttons(one: WebhookOut, *, may: bool) -> Component:
    name = one["name"]
    turn = ("pause", "Pause") if one["active"] else ("resume", "Resume")
    actions = [("messages", "Messages")]
    if may:
        actions += [
            ("test", "Test"),
            ("change", "Change"),
            turn,
            ("rotate", "New secret"),
            ("delete", "Delete"),
        ]
    return html.Div(
        [
            dmc.Button(
                words,
                variant="subtle",
                size="compact-xs",
                **click_target(PRESSED, **pressed_for(action, one)),
                **aria(f"{words}: {name}"),
            )
            for action, words in actions
        ],
        className="row-buttons",
    )


def message_table(messages: Sequence[WebhookDeliveryOut], *, may: bool) -> Component:
    """The messages of one webhook, newest first."""
    if not messages:
        return empty_state("No message yet", "Test sends one.")
    names = ("No.", "Type", "State", "Tries", "Made", "What came of it", "")
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    rows = [_message(one, may=may) for one in messages]
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _message(one: WebhookDeliveryOut, *, may: bool) -> html.Tr:
    again = dmc.Button(
        "Send again",
        variant="subtle",
        size="compact-xs",
        **click_target(
            PRESSED, action="redeliver", webhook=one["webhook_id"], name=one["id"], version=""
        ),
        **aria(f"Send message {one['number']} again"),
    )
    due = one["next_try_at"]
    waits = f"{one['message']} Next try {clock(due)} UTC.".strip() if due else one["message"]
    can = may and one["state"] != "running"
    cells: list[str | Component] = [
        str(one["number"]),
        one["type"],
        state_chip(one["state"]),
        str(one["tries"]),
        clock(one["created_at"]),
        html.Div(waits, className="breaks"),
        again if can else "",
    ]
    return html.Tr([html.Td(cell) for cell in cells])


def made_secret(made: WebhookMadeOut) -> html.Div:
    """The secret of a webhook, shown once."""
    return html.Div(
        [
            html.Div(f"The secret of {made['name']} is shown only now:", className="state-title"),
            html.Code(made["secret"], className="secret", tabIndex=0),
            html.Div("With it a receiver checks the signature of messages.", className="hint"),
        ],
        className="told",
        role="status",
    )
