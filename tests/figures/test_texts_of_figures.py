"""Texts of users in charts: no markup, and nothing beside them is turned."""

from __future__ import annotations

import pytest

from maat.figures.texts import escape


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>a & b</b>", "&lt;b&gt;a &amp; b&lt;/b&gt;"),
        ("Zürich €", "Zürich €"),
        ("\u202eevil <b>", "\u2068\u202eevil &lt;b&gt;\u2069"),
        ("\u05d0\u05d1", "\u2068\u05d0\u05d1\u2069"),
    ],
)
def test_a_text_is_escaped_and_turns_nothing_beside_it(text: str, shown: str) -> None:
    assert escape(text) == shown
