"""States of nodes as Slurm writes them: words and flags in JSON, `IDLE+DRAIN` or `idle~` in text.

A node that saves power exists and serves: Slurm wakes it for the job that is given to it. One that
is only planned for the future does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SIGNS = {  # after a word of sinfo
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
_LONG = {  # words of sinfo in its short form, and of other versions
    "ALLOC": "ALLOCATED",
    "MIX": "MIXED",
    "COMP": "COMPLETING",
    "PLND": "PLANNED",
    "RESV": "RESERVED",
    "DRNG": "DRAINING",
    "MAINT": "MAINTENANCE",
    "FAILG": "FAILING",
    "FUTR": "FUTURE",
    "UNK": "UNKNOWN",
    "NPC": "PERFCTRS",
    "POW_UP": "POWERING_UP",
    "POWER_UP": "POWERING_UP",
    "POW_DN": "POWERING_DOWN",
    "NO_RESPOND": "NOT_RESPONDING",
    "INVAL": "INVALID",
    "BOOT": "REBOOT_ISSUED",
    "REBOOT": "REBOOT_ISSUED",
    "BLOCK": "BLOCKED",
}
_SERVES = {"IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED", "RESERVED", "PERFCTRS"}
_ASLEEP = {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"}
_OUT = {
    *("DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "BLOCKED"),
    *("INVALID", "INVALID_REG", "MAINTENANCE", "REBOOT_ISSUED", "REBOOT_REQUESTED"),
}
_SILENT = "NOT_RESPONDING"
_WORDS = re.compile(r"[\s+,]+")


@dataclass(frozen=True, slots=True)
class NodeState:
    """The words of a node's state in capitals, each once; none where Slurm says nothing."""

    words: tuple[str, ...]

    @property
    def serves(self) -> bool:
        """Whether Slurm says that it starts jobs there, or would once it has woken the node."""
        works = any(word in _SERVES or word in _ASLEEP for word in self.words)
        return works and not self.is_out

    @property
    def is_asleep(self) -> bool:
        """Whether it is off to save power, or on its way there or back."""
        return any(word in _ASLEEP for word in self.words) and self.serves

    @property
    def is_out(self) -> bool:
        """Whether something speaks against it. A node that is off need not respond."""
        is_off = any(word in _ASLEEP for word in self.words)
        return any(word in _OUT or (word == _SILENT and not is_off) for word in self.words)

    @property
    def is_future(self) -> bool:
        """Whether there is a name for it, and no machine yet."""
        return "FUTURE" in self.words

    def __str__(self) -> str:
        return "+".join(self.words)


def node_state(value: object, flags: object = None) -> NodeState:
    """Return a state that is one word or several, as text or a list, with its flags."""
    words = [word for text in (*_texts(value), *_texts(flags)) for word in _of_text(text)]
    return NodeState(tuple(dict.fromkeys(words)))


def state_words(value: object) -> list[str]:
    """Return the words of a job's state, in capitals: text in older versions, a list in newer."""
    return [word.upper() for text in _texts(value) for word in _WORDS.split(text) if word]


def _texts(value: object) -> list[str]:
    if value is None:
        return []
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _of_text(text: str) -> list[str]:
    """Return the words of `IDLE+DRAIN` or `idle*~`: each with what the signs after it mean."""
    words: list[str] = []
    for word in _WORDS.split(text.upper()):
        bare = word.rstrip("".join(_SIGNS))
        words += [_LONG.get(bare, bare)] if bare else []
        words += [_SIGNS[sign] for sign in word[len(bare) :]]
    return words
