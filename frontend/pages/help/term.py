"""What a term is: one sentence, its formulas, and where the pages show it.

Its texts may hold `_{...}`, a subscript, and `^{...}`, a superscript.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCRIPT = re.compile(r"([_^])\{([^{}]*)\}")


def pieces(text: str) -> list[tuple[str, str]]:
    """Return a text in order: what each piece is (empty, `_` or `^`), and the piece."""
    split = _SCRIPT.split(text)
    found = [("", split[0])]
    for mark, script, after in zip(split[1::3], split[2::3], split[3::3], strict=True):
        found += [(mark, script), ("", after)]
    return [(mark, piece) for mark, piece in found if piece]


def plain(text: str) -> str:
    """Return a text as one types it: `N_g / N`."""
    return "".join(mark + piece for mark, piece in pieces(text))


@dataclass(frozen=True, slots=True)
class Formula:
    """`of`: which of several a term has; `means`: what it says, or what its letters are."""

    text: str
    of: str = ""
    means: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A page that shows a term; `part` says where on it."""

    path: str
    page: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """`key` is its anchor. A term has formulas, or says in `no_formula` why it has none.

    `more`: another sentence. `source`: papers and equations. `also`: other names of it.
    """

    key: str
    name: str
    sentence: str
    seen: tuple[Seen, ...]
    formulas: tuple[Formula, ...] = ()
    no_formula: str = ""
    source: str = ""
    more: str = ""
    also: tuple[str, ...] = ()

    def matches(self, sought: str) -> bool:
        """Return whether each word of a search is somewhere in the term."""
        text = plain(" ".join(self._texts())).casefold()
        return all(word in text for word in sought.casefold().split())

    def _texts(self) -> list[str]:
        said = [f"{one.of} {one.text} {one.means}" for one in self.formulas]
        names = [self.key, self.name, *self.also]
        return [*names, self.sentence, self.more, self.no_formula, self.source, *said]
