"""What a record of a change says in one line: for tables of the command line and of pages."""

from __future__ import annotations

import json

from maat.api.audit import AuditRecordOut

MOST_CHARACTERS = 80


def change_words(one: AuditRecordOut, *, most: int = MOST_CHARACTERS) -> str:
    """Return what differs between before and after, such as `role: viewer -> submitter`.

    `most`: characters; a longer text ends in an ellipsis.
    """
    before, after = one["before"], one["after"]
    parts = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if before and after and old == new:
            continue
        shown = _text(new) if not before else _text(old) if not after else None
        parts.append(f"{name}: {shown or f'{_text(old)} -> {_text(new)}'}")
    text = ", ".join(parts)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
