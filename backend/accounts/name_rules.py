"""Which names users and tenants may have: none that is read as another one, or as a word of Maat.

Names are the same if they are in form NFKC without capitals: full-width letters and letters that
are composed otherwise make no difference.
"""

from __future__ import annotations

import unicodedata

from sqlmodel import Session, col, select

from backend.accounts.models import Tenant, User
from backend.accounts.refusals import invalid

RESERVED = {
    # Rows of reports, filters of pages.
    Tenant: frozenset(
        {"all", "all tenants", "other tenants", "others", "idle", "total", "no label", "none"}
    ),
    # Who changed something, and `me` in addresses.
    User: frozenset(
        {"me", "an administrator", "a visitor", "maat", "the first start", "the operator"}
        | {"the provider"}
    ),
}
# Scripts that one language mixes with each other and with Latin letters.
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})


def free_name(session: Session, table: type[Tenant | User], name: str, *, but: str = "") -> str:
    """Return the name as it is stored, in form NFC. Raises Invalid.

    `but`: the id of the row that may have it already.
    """
    key = name_key(name)
    if key in RESERVED[table]:
        raise invalid(
            "/name",
            "reserved_name",
            "Maat uses this word itself, in reports or records.",
            "Give another name.",
            name,
        )
    if len(_scripts(key)) > 1:
        raise invalid(
            "/name",
            "mixed_scripts",
            "The name mixes letters of several scripts, of which some look alike.",
            "Write it with the letters of one script.",
            name,
        )
    if stored_name(session, table, name, but=but) is not None:
        what = "tenant" if table is Tenant else "user"
        raise invalid(
            "/name",
            "name_taken",
            f"Another {what} has this name.",
            "Give another name; capitals and forms of the same letter make no difference.",
            name,
        )
    return unicodedata.normalize("NFC", name)


def stored_name(
    session: Session, table: type[Tenant | User], name: str, *, but: str = ""
) -> str | None:
    """Return the same name as a row has it. `but`: the id of a row that does not count.

    Reads all names: databases know neither form.
    """
    key = name_key(name)
    names = session.exec(select(table.name).where(col(table.id) != but))
    return next((other for other in names if name_key(other) == key), None)


def name_key(name: str) -> str:
    """Return the form by which two names are the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _scripts(text: str) -> set[str]:
    """Return the scripts of the letters; those of East Asia, with Latin letters, are one."""
    found = {unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha()}
    return {"EAST ASIAN"} if found & _EAST_ASIAN and found <= _EAST_ASIAN | {"LATIN"} else found
