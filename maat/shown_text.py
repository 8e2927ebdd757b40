"""Which texts can be shown: printable ones, also with joiners and marks of direction.

Joiners stand within words of some scripts and within emoji. Pages isolate what a mark of direction
turns from the text beside it; a terminal shows marks as numbers.
"""

from __future__ import annotations

import re

DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WIDE = "[^\x00-\x7f\u200c\u200d]"  # beside ASCII a joiner only hides
_JOINERS = re.compile(f"(?<={_WIDE})[\u200c\u200d](?={_WIDE})")
_ISOLATES, _END_OF_ISOLATE = "\u2066\u2067\u2068", "\u2069"


def is_shown(text: str) -> bool:
    """Return whether a text holds printable characters, joiners and marks of direction only."""
    rest = _JOINERS.sub("", DIRECTION_MARKS.sub("", text))
    return rest.isprintable() and _ends_only_its_own(text)


def _ends_only_its_own(text: str) -> bool:
    """Return whether each end of an isolate has its beginning: else it would end the page's."""
    isolates = 0
    for sign in text:
        isolates += (sign in _ISOLATES) - (sign == _END_OF_ISOLATE)
        if isolates < 0:
            return False
    return True
