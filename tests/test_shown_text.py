"""Texts that can be shown: names in every script, and nothing that hides or steers."""

from __future__ import annotations

import pytest

from maat.shown_text import is_shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "train 1",
        "\u05d0\u05d1\u200f 2",
        "\u202eturned",
        "a \u2067\u0627\u2068b\u2069\u2069 c",
        "\u061c1",
        "\u2066a",
        "\u0645\u06cc\u200c\u062e 1",  # Persian
        "\U0001f469\u200d\U0001f467 x",  # an emoji of two
    ],
)
def test_printable_text_with_joiners_and_marks_of_direction_is_shown(text: str) -> None:
    assert is_shown(text)


@pytest.mark.parametrize(
    "text",
    [
        "t4\u200b",
        "t\u200d4",
        "\u0645\u200c",
        "\u0645\u200c\u200c\u062e",
        "a\nb",
        "a\x07",
        "\ud800",
        "\ufeffa",
        "\u202a\0",
    ],
)
def test_text_with_invisible_or_steering_signs_is_not(text: str) -> None:
    assert not is_shown(text)


@pytest.mark.parametrize("text", ["\u2069\u202ea", "\u2066a\u2069\u2069", "a\u2069b\u2066"])
def test_the_end_of_an_isolate_that_the_text_did_not_begin_is_not(text: str) -> None:
    assert not is_shown(text)
