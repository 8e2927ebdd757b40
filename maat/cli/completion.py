"""What a shell proposes while a word is typed: names that a running service knows.

A service that does not answer at once proposes nothing, and says nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from maat.client import Client

PATIENCE_SECONDS = 1.0  # of each part of a call: somebody waits for the key they pressed
MOST_PROPOSED = 100
# The shell takes a proposed word as if it had been typed: what it would read as more than a word,
# such as `a; rm b`, is never proposed.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,:+@%/-]*")

Ask = Callable[["Client", str], Iterator[str]]
Proposer = Callable[[typer.Context, str], list[str]]


def _asking(ask: Ask) -> Proposer:
    """Make a proposer of a question to the service about what begins with the typed text."""

    def propose(ctx: typer.Context, incomplete: str) -> list[str]:
        from maat.client import Client
        from maat.client.clients import DEFAULT_URL

        url = str(ctx.params.get("url") or os.environ.get("MAAT_URL") or DEFAULT_URL)
        token = os.environ.get("MAAT_TOKEN")
        try:
            with Client(url, token=token, timeout_seconds=PATIENCE_SECONDS) as maat:
                return words_of(list(ask(maat, incomplete)), incomplete)
        except Exception:  # whatever it is: a message would stand in the line that is being typed
            return []

    return propose


def words_of(names: Sequence[str], incomplete: str) -> list[str]:
    """Return the names that begin so and are one word of a shell, each once."""
    return [
        name
        for name in dict.fromkeys(names)
        if name.startswith(incomplete) and _WORD.fullmatch(name)
    ]


@_asking
def job_names(maat: Client, incomplete: str) -> Iterator[str]:
    """Yield the names of the newest jobs; the id of one whose name is not one word."""
    is_id = incomplete.startswith("job_")
    named = None if is_id or not incomplete else incomplete
    for job in maat.jobs(limit=MOST_PROPOSED, q=named)["items"]:
        yield job["id"] if is_id or not _WORD.fullmatch(job["name"]) else job["name"]


@_asking
def model_names(maat: Client, _: str) -> Iterator[str]:
    """Yield the models of the catalog."""
    from maat.client import calls

    yield from (model["name"] for model in maat.send(calls.models())["items"])
