"""The page of terms: a search whose text is in the address, and an anchor for each term."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, anything, quoted
from frontend.api import Api
from frontend.attributes import aria
from frontend.callbacks import Changes, answer, in_browser
from frontend.components.cards import card, empty_state, link_button, page_title
from frontend.pages.help.term import Formula, Seen, Term, pieces
from frontend.pages.help.terms import GROUPS
from frontend.routing import QueryValue, query_value

_MARKS = {"_": html.Sub, "^": html.Sup}


def layout(q: QueryValue = None, **_query: object) -> html.Div:
    sought = query_value(q) or ""
    search = dmc.TextInput(
        id="help-search",
        value=sought,
        placeholder="Search the terms, such as goodput or rho",
        debounce=200,
        className="help-search",
        **aria("Search the terms"),
    )
    return html.Div(
        [
            page_title("Help: terms"),
            search,
            html.Div(shown(sought), id="help-terms"),
            dcc.Store(id="help-searched"),
            dcc.Store(id="help-term"),
        ]
    )


def register(app: Dash, _api: Api) -> None:
    add_page(
        __name__,
        path="/help",
        name="Help",
        title="Help",
        order=9,
        layout=layout,
        takes={"q": anything},
    )
    answer(
        app,
        find,
        output={"terms": Output("help-terms", "children")},
        inputs={"sought": Input("help-search", "value")},
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "helpInUrl",
        Output("help-searched", "data"),
        Input("help-search", "value"),
        prevent_initial_call=True,
    )
    in_browser(app, "toTerm", Output("help-term", "data"), Input("here", "hash"))


async def find(*, sought: str | None) -> Changes:
    return {"terms": shown(sought or "")}


def shown(sought: str) -> list[Component]:
    """Return the terms that match a search, in their groups; without a match, the way out."""
    found = {
        group: [term for term in terms if term.matches(sought)] for group, terms in GROUPS.items()
    }
    cards = [
        card(group, [_term(term) for term in terms], mb=12)
        for group, terms in found.items()
        if terms
    ]
    told = html.Div(_hit_count_text(sought, found), className="hint", role="status")
    return [told, *(cards or [_none(sought)])]


def _hit_count_text(sought: str, found: dict[str, list[Term]]) -> str:
    count, of = (sum(len(terms) for terms in groups.values()) for groups in (found, GROUPS))
    return f"{count} of {of} terms" if sought.strip() else f"{of} terms"


def _none(sought: str) -> Component:
    every = link_button("Show all terms", "/help", variant="primary")
    remedy = "Try another word, or a part of one. The names of the papers are known too."
    return card(None, empty_state(f"No such term: {quoted(sought.strip())}", remedy, action=every))


def _term(term: Term) -> Component:
    """A term; the heading leads to its own anchor."""
    anchor = html.A(
        "#", href=f"#{term.key}", className="term-anchor", **aria(f"Address of {term.name}")
    )
    also = [html.Div(f"also: {', '.join(term.also)}", className="caption")] if term.also else []
    told: list[Component] = [
        html.P(_set(term.sentence), className="term-sentence"),
        *(_formula(one) for one in term.formulas),
        *([_hint(f"No formula: {term.no_formula}.")] if term.no_formula else []),
        *([_hint(term.more)] if term.more else []),
        *([_hint(f"Source: {term.source}")] if term.source else []),
        _where(term),
    ]
    head = html.Div([html.H3([term.name, " ", anchor], className="term-name"), *also])
    return html.Article(
        [head, html.Div(told)], id=term.key, className="term", tabIndex=-1, **aria(term.name)
    )


def _formula(one: Formula) -> Component:
    return html.Div(
        [
            *([html.Div(one.of, className="caption")] if one.of else []),
            html.Div(_set(one.text), className="formula"),
            *([_hint(one.means)] if one.means else []),
        ],
        className="term-formula",
    )


def _hint(text: str) -> Component:
    return html.Div(_set(text), className="hint")


def _set(text: str) -> list[str | Component]:
    """Set a text with its subscripts and superscripts."""
    return [_MARKS[mark](piece) if mark else piece for mark, piece in pieces(text)]


def _where(term: Term) -> Component:
    links = [part for one in term.seen for part in (_link(term, one), ", ")][:-1]
    return html.Div(["Seen at ", *links], className="hint")


def _link(term: Term, seen: Seen) -> Component:
    """A link to a page, of the cluster that is shown."""
    words = f"{seen.page}: {seen.part}" if seen.part else seen.page
    return dcc.Link(words, href=seen.path, id={"to": seen.path, "words": f"{term.key}: {words}"})
