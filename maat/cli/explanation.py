"""An explanation as `maat explain` prints it, with the command for each remedy."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from maat.api.belief_words import weighed_words
from maat.api.job_words import WHILE_FLAGGED, place_words
from maat.api.reason_words import evidence_words

if TYPE_CHECKING:
    from maat.api.job_answers import ExplanationOut, JobOut, Remedy

NO_PRESS = "wait"
"""The action of remedies for which there is nothing to do."""


def explanation_lines(job: JobOut, explanation: ExplanationOut) -> list[str]:
    """Return what holds, why it has what it has, the numbers, and remedies with their commands."""
    primary = explanation["primary"]
    lines = [primary["sentence"], *_flag_lines(job)]
    if queue := explanation["queue"]:
        lines.append(place_words(queue["waiting"], queue["position"]))
    if explanation["choice"]:
        lines += [] if job["finished_at"] is None else ["As of its last round:"]
        lines += [f"  {sentence}" for sentence in explanation["choice"]["sentences"]]
    if locality := explanation["locality"]:
        lines.append(weighed_words(locality))
    lines += [f"Also: {other['sentence']}" for other in explanation["reasons"][1:]]
    if waited := explanation["waited"]:
        at = "" if waited["as_of_round"] is None else f", as of round {waited['as_of_round']}"
        lines.append(f"Before, it waited{at}: {waited['sentence']}")
    lines += [f"  {name}: {value}" for name, value in evidence_words(primary["evidence"])]
    lines += [f"  | {line}" for line in explanation["last_lines"]]
    if job["deadline"] is not None:
        lines.append(deadline_words(job))
    for remedy in explanation["remedies"]:
        lines += _remedy_lines(job, remedy)
    return lines


def _flag_lines(job: JobOut) -> Iterator[str]:
    for flag in job["flags"]:
        if flag["dismissed_at"] is None:
            yield f"Flagged ({flag['kind']}): {flag['sentence']} {WHILE_FLAGGED}"
            yield f"  If it is right: {shlex.join(['maat', 'dismiss', job['id'], flag['kind']])}"
        else:
            yield f"Flagged ({flag['kind']}), and dismissed by {flag['dismissed_by']}."


def _remedy_lines(job: JobOut, remedy: Remedy) -> Iterator[str]:
    yield f"- {remedy['sentence']}"
    if remedy["action"] != NO_PRESS and remedy["permitted"]:
        yield f"    {shlex.join(['maat', 'explain', job['id'], '--apply', remedy['code']])}"


def deadline_words(job: JobOut) -> str:
    """`Deadline 2026-12-01T08:00:00.000Z: it will be missed by 2.0 h.`"""
    hours = f"{(job['deadline_seconds_late'] or 0.0) / 3600:.1f} h"
    words = {
        "on-time": "on time",
        "late": f"it will be missed by {hours}",
        "unknown": "unknown yet",
        "met": "met",
        "missed": f"missed by {hours}",
    }
    outlook = words.get(job["deadline_outlook"] or "")
    return f"Deadline {job['deadline']}{f': {outlook}' if outlook else ''}."
