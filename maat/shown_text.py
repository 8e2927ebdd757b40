"""Which texts can be shown: printable ones, also with marks that turn the direction of writing.

Pages isolate what a mark turns from the text beside it; a terminal shows marks as numbers.
"""

from __future__ import annotations

import re

DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ISOLATES, _END_OF_ISOLATE = "\u2066\u2067\u2068", "\u2069"


def is_shown(text: str) -> bool:
    """Return whether a text holds printable characters and marks of direction only."""
    return DIRECTION_MARKS.sub("", text).isprintable() and _ends_only_its_own(text)


def _ends_only_its_own(text: str) -> bool:
    """Return whether each end of an isolate has its beginning: else it would end the page's."""
    isolates = 0
    for sign in text:
        isolates += (sign in _ISOLATES) - (sign == _END_OF_ISOLATE)
        if isolates < 0:
            return False
    return True
