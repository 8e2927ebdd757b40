"""Events of a job in words: what happened, from which state to which and why, and its details."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from frontend.formatting import gpus, number, plural
from maat.api.job_answers import JobEventOut
from maat.api.reason_words import label
from maat.vocabulary import JobState

MOST_CHARACTERS = 160  # of the details of an event

_KINDS = {
    "allocated": "other GPUs",
    "node-failed": "a node failed",
    "checkpoint": "trouble with a checkpoint",
    "engine": "its engine",
    "report": "a report was refused",
    "flag": "what it reports is unlikely",
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
    "weight": "got another weight",
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
# Why a job passes to a state where its event names neither change nor cause.
_BY_ITSELF: Mapping[str, str] = {
    JobState.PROFILING: "its speed is measured first",
    JobState.PENDING: "it waits for GPUs",
    JobState.STARTING: "it has GPUs",
    JobState.RUNNING: "it has started on its GPUs",
    JobState.SUCCEEDED: "its work is done",
    JobState.CANCELLED: "it was asked to end",
}
# Told in words of their own, not by name and value.
_SAID = frozenset(
    {"action", "change", "cause", "gpu_type", "gpu_count", "node_count", "last_lines"}
)


def with_state_before(
    events: Iterable[JobEventOut],
) -> Iterator[tuple[JobEventOut, str | None]]:
    """Yield events, each with the state in which it found the job.

    `events`: oldest first. None: no event has told a state before.
    """
    state = None
    for event in events:
        yield event, state
        state = event["state"] or state


def event_words(
    kind: str, data: Mapping[str, object], *, state: str | None = None, before: str | None = None
) -> str:
    """`from pending to starting: got its first GPUs`, or what happened in the same state.

    `state`: the one to which the job passed, None if it did not. `before`: the one it was in.
    """
    what = _change_words(data)
    if state is None:
        return what or _kind_words(kind, data)
    passed = f"from {before} to {state}" if before else state
    why = what or _cause_words(data) or ("" if before is None else _BY_ITSELF.get(state))
    return f"{passed}: {why}" if why else passed


def _change_words(data: Mapping[str, object]) -> str:
    """What a round did to the job; nothing if it was no round."""
    change = data.get("change")
    return _CHANGES.get(change, _plain(change)) if isinstance(change, str) else ""


def _cause_words(data: Mapping[str, object]) -> str:
    cause = data.get("cause")
    return _CAUSES.get(cause, _plain(cause)) if isinstance(cause, str) else ""


def _kind_words(kind: str, data: Mapping[str, object]) -> str:
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
    parts += [
        _exits(value)
        if name == "exit_codes" and isinstance(value, Mapping)
        else f"{label(name)} {_value(value)}"
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
    return str(value).removesuffix(".")


def _exits(codes: Mapping[str, object]) -> str:
    """`exit code 1 of rank 0, 0 of rank 1`."""
    return "exit code " + ", ".join(f"{code} of rank {rank}" for rank, code in codes.items())


def _plain(word: str) -> str:
    return word.replace("_", " ").replace("-", " ")
