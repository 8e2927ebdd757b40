"""What was changed, on the page of administration: a list with filters, and the same as a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, aria
from frontend.callbacks import Changes, answer
from frontend.components.cards import card, empty_state, error_state, scrolls, skeleton
from frontend.components.names import cut_name
from frontend.components.next_step import leads
from frontend.formatting import clock
from frontend.routing import path_to
from maat.api.audit import AuditRecordOut
from maat.client.audit_words import change_words
from maat.client.calls import PREFIX, AuditFilters

MAY_READ = "audit:read"
AT_ONCE, MOST = 50, 500
MOST_CHARACTERS = 2000  # of what a change says
FORMS = (("csv", "CSV"), ("json", "JSON"))
FIELDS = (("actor", "Who"), ("action", "Action: change user"), ("target", "Id of a row"))


def cards() -> html.Div:
    filters = [
        dmc.TextInput(
            id=f"admin-audit-{name}",
            placeholder=words,
            value="",
            debounce=300,
            size="xs",
            **aria(words),
        )
        for name, words in FIELDS
    ]
    content = [
        dmc.Group([*filters, html.Div(id="admin-audit-files")], gap=8, mb=8),
        scrolls("admin-audit", skeleton(120), label="Changes"),
        dmc.Button(
            "Show more",
            id="admin-audit-more",
            variant="subtle",
            size="xs",
            n_clicks=0,
            style=HIDDEN,
        ),
    ]
    return html.Div(card("Changes", content, mb=12))


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_audit, api),
        output={
            "records": Output("admin-audit", "children"),
            "files": Output("admin-audit-files", "children"),
            "more": Output("admin-audit-more", "style"),
        },
        inputs={
            "clicks": Input("admin-audit-more", "n_clicks"),
            **{name: Input(f"admin-audit-{name}", "value") for name, _ in FIELDS},
        },
    )


async def show_audit(
    api: Api,
    *,
    clicks: int | None,
    actor: str | None,
    action: str | None,
    target: str | None,
) -> Changes:
    filters = AuditFilters(
        actor=(actor or "").strip() or None,
        action=(action or "").strip() or None,
        target=(target or "").strip() or None,
    )
    limit = min(AT_ONCE * ((clicks or 0) + 1), MOST)
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            if MAY_READ not in me["permissions"]:
                return {"records": not_yours(), "files": None, "more": HIDDEN}
            found = await maat.audit(limit=limit, **filters)
    except Failure as error:
        return {"records": error_state(error), "more": HIDDEN}
    has_more = found["next_cursor"] is not None
    return {
        "records": record_table(found["items"], is_cut=has_more and limit == MOST),
        "files": file_links(filters),
        "more": SHOWN if has_more and limit < MOST else HIDDEN,
    }


def not_yours() -> Component:
    return empty_state(
        "Not yours to see",
        "Auditors and cluster admins see what was changed: ask one of them.",
        action=leads("Back to the overview", "/"),
    )


def record_table(records: Sequence[AuditRecordOut], *, is_cut: bool) -> Component:
    """The records, newest first. `is_cut`: there are more than are shown at once."""
    if not records:
        return empty_state(
            "No changes",
            "None matches: leave a filter out.",
            action=leads("All changes", "/admin?tab=audit"),
        )
    names = ("When", "Who", "What", "Changed object", "Tenant", "Change", "Request id")
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    table = html.Table([head, html.Tbody([_row(one) for one in records])], className="plain-table")
    note = f"Only the newest {MOST} are shown: filter, or save the file."
    return html.Div([table, *([html.Div(note, className="hint")] if is_cut else [])])


def _row(one: AuditRecordOut) -> html.Tr:
    return html.Tr(
        [
            html.Td(clock(one["at"])),
            html.Td(html.Span(one["actor"], title=one["credential"] or one["actor_kind"])),
            html.Td(one["action"]),
            html.Td(html.Code(one["target_id"]) if one["target_id"] else "–"),
            html.Td(cut_name(one["tenant"]) if one["tenant"] else "–"),
            html.Td(change_words(one, most=MOST_CHARACTERS), className="wraps wide"),
            html.Td(html.Code(one["request_id"]) if one["request_id"] else "–", className="breaks"),
        ]
    )


def file_links(filters: AuditFilters) -> list[Component]:
    """Return links to all records that match, as CSV and as JSON."""
    query: dict[str, str] = {
        name: value for name, value in filters.items() if isinstance(value, str)
    }
    links: list[Component] = [
        html.A(
            label,
            href=path_to(f"{PREFIX}/audit/export/{form}", **query),
            className="button-link",
            download=f"maat-audit.{form}",
            **aria(f"Save the changes as {label}"),
        )
        for form, label in FORMS
    ]
    return links
