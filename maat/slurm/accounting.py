"""Slurm's accounting in JSON (`sacct --json`), as the table that `sacct -P` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maat.slurm.json_values import UnreadableAnswer, number_text, text_of
from maat.slurm.states import state_words

_COLUMNS = (
    *("JobIDRaw", "Cluster", "User", "Account", "Submit", "Start", "End", "ElapsedRaw", "State"),
    *("NNodes", "AllocTRES", "ReqTRES"),
)


def accounting_table(data: Mapping[str, Any]) -> str:
    """Return the jobs of an answer, one a line below a header; times are Unix seconds.

    What a record lacks is an empty cell; what it has in another form is copied as it is written.
    The reader of the table drops such records. Raises UnreadableAnswer.
    """
    if not isinstance(data.get("jobs"), list):
        raise UnreadableAnswer("it has no list of jobs")
    if data["jobs"] and not any(_fields(_fields(each).get("time")) for each in data["jobs"]):
        raise UnreadableAnswer("none of its jobs says when it ran")
    rows = [_row(entry) for entry in data["jobs"]]
    lines = ("|".join(map(_cell, row)) for row in (_COLUMNS, *rows))
    return "\n".join(lines) + "\n"


def _row(entry: object) -> list[str]:
    cells = list(_cells(_fields(entry)))
    return cells if any(cells) else [text_of(entry) or "null", *cells[1:]]  # no line is empty


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _cells(entry: Mapping[str, Any]) -> Iterator[str]:
    times, tres = _fields(entry.get("time")), _fields(entry.get("tres"))
    yield number_text(entry.get("job_id"))
    yield from (text_of(entry.get(name)) for name in ("cluster", "user", "account"))
    yield from (_moment(times.get(name)) for name in ("submission", "start", "end"))
    yield number_text(times.get("elapsed"))
    yield next(iter(state_words(_fields(entry.get("state")).get("current"))), "")
    yield number_text(entry.get("allocation_nodes"))
    yield from (_tres(tres.get(name)) for name in ("allocated", "requested"))


def _moment(value: object) -> str:
    """Return a time; one that has not come is zero in JSON."""
    text = number_text(value)
    return "Unknown" if text == "0" else text


def _tres(value: object) -> str:
    """`gres/gpu:a100=4`: what a list of resources says."""
    listed = value if isinstance(value, list) else []
    return ",".join(
        f"{text_of(each.get('type'))}{'/' if each.get('name') else ''}{text_of(each.get('name'))}"
        f"={number_text(each.get('count'))}"
        for each in map(_fields, listed)
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
