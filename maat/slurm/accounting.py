"""Slurm's accounting in JSON (`sacct --json`), as the table that `sacct -P` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maat.slurm.json_values import number, reading, text_of
from maat.slurm.states import state_words

_COLUMNS = (
    *("JobIDRaw", "Cluster", "User", "Account", "Submit", "Start", "End", "ElapsedRaw", "State"),
    *("NNodes", "AllocTRES", "ReqTRES"),
)


def accounting_table(data: Mapping[str, Any]) -> str:
    """Return the jobs of an answer, one a line below a header; times are Unix seconds.

    Raises UnreadableAnswer.
    """
    with reading():
        rows = [list(_cells(entry)) for entry in data["jobs"]]
    lines = ("|".join(map(_cell, row)) for row in (_COLUMNS, *rows))
    return "\n".join(lines) + "\n"


def _cells(entry: Mapping[str, Any]) -> Iterator[str]:
    times, tres = entry["time"], entry.get("tres") or {}
    yield str(number(entry["job_id"]))
    yield from (text_of(entry.get(name)) for name in ("cluster", "user", "account"))
    yield from (_moment(times.get(name)) for name in ("submission", "start", "end"))
    yield str(number(times.get("elapsed")))
    yield next(iter(state_words(entry["state"]["current"])), "")
    yield str(number(entry.get("allocation_nodes")))
    yield from (_tres(tres.get(name)) for name in ("allocated", "requested"))


def _moment(value: object) -> str:
    """Return a time; one that has not come is zero in JSON."""
    return str(number(value) or "Unknown")


def _tres(value: object) -> str:
    """`gres/gpu:a100=4`: what a list of resources says."""
    listed = value if isinstance(value, list) else []
    return ",".join(
        f"{each['type']}{'/' if each.get('name') else ''}{text_of(each.get('name'))}"
        f"={number(each.get('count'))}"
        for each in listed
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
