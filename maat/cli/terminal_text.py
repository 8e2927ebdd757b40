"""Text of others on a terminal: without what would steer the terminal."""

from __future__ import annotations

import re

from maat.shown_text import DIRECTION_MARKS

_MOST_HELD = 256  # characters of a sequence that may still be whole with the next text

_SEQUENCES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # colours, the cursor, what is on the screen
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # titles, links
    "|\x1b[ -/]*[0-OQ-WYZ\\\\`-~]"  # a reset, a character set
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class TerminalText:
    """Takes control sequences out of a text that comes in parts.

    Tabs, line feeds and carriage returns stay: bars of progress need the last. Other control
    characters are shown as signs.
    """

    def __init__(self) -> None:
        self._unfinished = ""

    def add(self, text: str) -> str:
        """Return what can be shown now; a sequence that is not whole yet is held back."""
        text = _SEQUENCES.sub("", self._unfinished + text)
        begun = text.find("\x1b")  # whole ones are out: it begins one
        is_begun = begun >= 0 and len(text) - begun <= _MOST_HELD
        self._unfinished = text[begun:] if is_begun else ""
        return _shown(text[:begun] if is_begun else text)

    def end(self) -> str:
        """Return what is still held back."""
        held, self._unfinished = self._unfinished, ""
        return _shown(held)


def without_controls(text: str) -> str:
    """Return lines of a whole text without what steers the terminal or turns the order of letters.

    Line feeds and tabs stay. What turns letters is shown as its number: a terminal would let it
    turn what stands beside the text.
    """
    whole = TerminalText()
    shown = whole.add(text) + whole.end()
    return DIRECTION_MARKS.sub(
        lambda found: f"\\u{ord(found[0]):04x}",
        shown.replace("\r", "\N{SYMBOL FOR CARRIAGE RETURN}"),
    )


def in_one_line(text: str) -> str:
    """Return a cell of a table, such as a name: also line feeds and tabs are shown as signs."""
    return re.sub("[\t\n]", lambda found: _sign(found[0]), without_controls(text))


def _shown(text: str) -> str:
    return _CONTROLS.sub(lambda found: _sign(found[0]), text)


def _sign(control: str) -> str:
    """Return the picture of a control character, or its number."""
    code = ord(control)
    return chr(0x2400 + code) if code < 0x20 else f"\\x{code:02x}"
