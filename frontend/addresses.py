"""Addresses of pages: their paths, their parameters, and a note on unknown parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from re import findall, fullmatch
from typing import Any

import dash
from dash import dcc, html

from frontend.routing import query_values

# What is wrong with a value, as a sentence; None where it is understood.
Check = Callable[[str], str | None]
CLUSTER = "cluster"  # every page takes it: links carry it along
ZOOM = "zoom"  # and this: the span of the x axis that its charts show, by assets/chart_tools.js
MOST_CHARACTERS = 80


def add_page(
    module: str,
    *,
    title: str,
    layout: Callable[..., Any],
    takes: Mapping[str, Check] | None = None,
    all_of: tuple[str, str] | None = None,
    **where: Any,
) -> None:
    """Register a page.

    Args:
        takes: The parameters of its address, each with its check. What is wrong in them is said
            above the page. None: any parameter may be given.
        all_of: Path and words of the link beside that note; the page itself if None.
        where: `path` or `path_template`, and `name` and `order` in the navigation.
    """
    template = where.get("path_template") or where["path"]
    in_path = findall(r"<(\w+)>", template)

    def answered(**asked: Any) -> Any:
        page = layout(**asked)
        query = {name: value for name, value in asked.items() if name not in in_path}
        wrong = not_understood(takes, query) if takes is not None else []
        path = template
        for name in in_path:
            path = path.replace(f"<{name}>", str(asked.get(name, "")))
        return (
            html.Div([address_note(wrong, *(all_of or (path, f"{title} without it"))), page])
            if wrong
            else page
        )

    dash.register_page(module, title=f"{title} · Maat", layout=answered, **where)  # type: ignore[no-untyped-call]


def anything(_value: str) -> str | None:
    return None


def among(noun: str, known: Iterable[str]) -> Check:
    """One of some words."""
    words = tuple(known)

    def check(value: str) -> str | None:
        return (
            None
            if value in words
            else f"There is no {noun} {quoted(value)}. Choose one of {', '.join(words)}."
        )

    return check


def counting(noun: str, most: int) -> Check:
    """A whole number from 1 to `most`."""

    def check(value: str) -> str | None:
        fits = (
            value.isascii()
            and value.isdecimal()
            and len(value) <= len(str(most))
            and 1 <= int(value) <= most
        )
        return (
            None if fits else f"There is no {noun} {quoted(value)}. Give a whole number from 1 up."
        )

    return check


def _span(value: str) -> str | None:
    """Two ends of an axis, such as `20~80` or `2026-11-20T10:00:00~2026-11-20T12:00:00`."""
    end = r"-?\d[\d.:T \-]*"
    fits = fullmatch(f"{end}~{end}", value)
    return None if fits else f"There is no span {quoted(value)}. Drag over a chart to choose one."


def quoted(value: str) -> str:
    return f"“{value if len(value) <= MOST_CHARACTERS else value[: MOST_CHARACTERS - 1] + '…'}”"


def not_understood(takes: Mapping[str, Check], query: Mapping[str, Any]) -> list[str]:
    """Sentences on what the page leaves out of account, in the order of the address."""
    found = []
    checks = {**takes, ZOOM: _span}
    for name, given in query.items():
        if name == CLUSTER:
            continue
        for value in query_values(given):
            if name not in checks:
                known = ", ".join([CLUSTER, *takes])
                found.append(
                    f"This page has no parameter {quoted(name)} (here {quoted(value)}). "
                    f"Its address takes {known}."
                )
            elif wrong := checks[name](value):
                found.append(wrong)
    return found


def address_note(sentences: Iterable[str], path: str, words: str) -> html.Div:
    """Return the note above a page: what is wrong in its address, and the page without it."""
    lines = [html.Div(sentence) for sentence in sentences]
    remedy = html.Div(
        [
            "It is left out of what this page shows. ",
            dcc.Link(words, href=path, id={"to": path, "words": words}),
        ]
    )
    title = html.Div("⚠ Not all of this address is understood", className="state-title")
    return html.Div([title, *lines, remedy], className="address-note", role="alert")
