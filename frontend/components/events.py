"""Events of a job in words: what happened, and its details."""

from __future__ import annotations

from collections.abc import Mapping

from frontend.formatting import gpus, number, plural
from maat.api.reason_words import label

MOST_CHARACTERS = 160  # of the details of an event

_KINDS = {
    "state": "new state",
    "allocated": "other GPUs",
    "node-failed": "a node failed",
    "checkpoint": "trouble with a checkpoint",
    "engine": "its engine",
    "report": "a report was refused",
    "asked": "a request",
    "deadline": "will miss its deadline",
}
_CHANGES = {
    "start": "got its first GPUs",
    "rescale": "got another number of GPUs",
    "migrate": "moved to other GPUs",
    "preempt": "lost its GPUs to others",
    "resume": "got GPUs again",
    "batch": "got another batch size",
}
_ASKED = {
    "pause": "asked to pause",
    "hold": "asked not to start",
    "resume": "asked to go on",
    "priority": "got another priority",
    "label": "got other labels",
    "change": "was changed",
}
_CAUSES = {
    "node-failed": "its node failed",
    "lost": "it was found without its GPUs",
    "holds-gpus": "it was found to hold GPUs",
    "ended": "it was found to have ended",
    "paused": "it was asked to pause",
    "resumed": "it was asked to go on",
    "follows-others": "it follows other jobs",
    "others-succeeded": "the jobs that it follows have succeeded",
    "crash": "its processes failed",
    "crash-loop": "it crashes in a loop",
    "engine-lost": "its node or its supervisor was lost",
    "cancelled-there": "it was cancelled in the engine, not by Maat",
    "refused": "the engine did not take it",
}
# Told in words of their own, not by name and value.
_SAID = frozenset(
    {"action", "change", "cause", "gpu_type", "gpu_count", "node_count", "last_lines"}
)


def event_words(kind: str, data: Mapping[str, object]) -> str:
    """`got its first GPUs`: what a round did to the job, or else the kind of the event."""
    change = data.get("change")
    if isinstance(change, str):
        return _CHANGES.get(change, _plain(change))
    if kind == "asked":
        return _ASKED.get(str(data.get("action")), _KINDS[kind])
    return _KINDS.get(kind, _plain(kind))


def details(data: Mapping[str, object], limit: int = MOST_CHARACTERS) -> str:
    """An event's data on one line: `4 × a100 on 2 nodes`."""
    parts = []
    if "gpu_type" in data and isinstance(held := data.get("gpu_count"), int):
        nodes = data.get("node_count")
        where = f" on {plural(nodes, 'node')}" if isinstance(nodes, int) else ""
        parts.append(gpus(held, str(data["gpu_type"])) + where)
    if cause := data.get("cause"):
        parts.append(_CAUSES.get(str(cause), _plain(str(cause))))
    parts += [
        f"{label(name)} {_value(value)}"
        for name, value in data.items()
        if name not in _SAID and value not in (None, {}, [])
    ]
    text = ", ".join(parts)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _value(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return "(" + details(value, MOST_CHARACTERS // 2) + ")"
    return str(value)


def _plain(word: str) -> str:
    return word.replace("_", " ").replace("-", " ")
