"""What a log may do to the terminal that shows it: nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.cli.terminal_text import TerminalText, in_one_line, without_controls

PARTS = st.lists(
    st.sampled_from(
        [
            "\x1b[31m",
            "\x1b",
            "[",
            "]0;",
            "title",
            "\x07",
            "\x1b\\\\",
            "\n",
            "\t",
            "\x9b",
            "2J",
            "é",
            "\0",
        ]
    )
)


def shown(*parts: str) -> str:
    text = TerminalText()
    return "".join(text.add(part) for part in parts) + text.end()


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("plain\ttext\r\n", "plain\ttext\r\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07here", "here"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[H\x1bcgone", "gone"),
        ("\x9b31mred", "\\x9b31mred"),
        ("bell\x07 null\0 del\x7f", "bell\u2407 null\u2400 del\\x7f"),
        ("it ends with \x1b", "it ends with \u241b"),
    ],
)
def test_control_sequences_are_taken_out(written: str, seen: str) -> None:
    assert shown(written) == seen
    assert shown(*written) == seen, "character by character"


@given(PARTS)
def test_nothing_that_steers_a_terminal_is_left(parts: list[str]) -> None:
    text = shown(*parts)
    assert not [letter for letter in text if ord(letter) < 32 and letter not in "\n\t\r"]
    assert not [letter for letter in text if 0x7F <= ord(letter) <= 0x9F]


def test_an_endless_title_is_not_held_back_for_ever() -> None:
    text = TerminalText()
    assert len(text.add("\x1b]0;" + "x" * 1000)) > 900


def test_a_name_stays_in_its_line_and_turns_nothing_around() -> None:
    evil = "a\x1b]0;title\x07b\u202ec\u2066d\ne\tf\rg"
    assert in_one_line(evil) == "ab\\u202ec\\u2066d␊e␉f␍g"
    assert without_controls("line\n\x1b[2Jline\n") == "line\nline\n"
    assert without_controls("\u05d0\u05d1 é") == "\u05d0\u05d1 é"
