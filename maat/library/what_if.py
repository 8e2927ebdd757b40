"""`maat.what_if`: what a change of a live cluster, or one more job, would do to all jobs."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maat.library.arrow import Kind
from maat.library.durations import bounds_of
from maat.library.live import client_or_here
from maat.library.progress import Bar
from maat.library.tables import Cell, Table
from maat.scheduling.errors import MaatError, ParameterError

if TYPE_CHECKING:
    from maat.api.forecasts import ForecastOut
    from maat.api.jobs import JobBody
    from maat.api.operations import OperationOut
    from maat.client import Client

Tell = Callable[["OperationOut", str], object]
_SIDES: Mapping[str, Kind] = {
    "side": str,
    "policy": str,
    "placer": str,
    "jobs": int,
    "waiting": int,
    "later": int,
    "mean_start_seconds": float,
    "mean_end_of_waiting_seconds": float,
    "mean_end_seconds": float,
    "last_end_seconds": float,
}


def what_if(
    *,
    client: Client | None = None,
    cluster: str | None = None,
    job: JobBody | Mapping[str, Any] | None = None,
    drain: str | Sequence[str] = (),
    add: str | Sequence[str] = (),
    policy: str | None = None,
    placer: str | None = None,
    least_stay_seconds: str | None = None,
    most_moves_per_hour: str | int | None = None,
    progress: bool = True,
) -> WhatIf:
    """Ask a service what a change of its cluster, or a job that is not submitted, would do.

    Nothing is changed. Ctrl+C cancels. For a job that is submitted: `client.job_forecast(id)`.

    Raises InputError if nothing is asked or a value is wrong, ApiError for what the service
    refuses, Unreachable if it does not answer, and MaatError if it was cancelled or failed there.

    Args:
        client: Of the service, `maat.Client(url, token=...)`; None: the one on this machine.
        cluster: Id or name; None: the first.
        job: What would be submitted: `{"name": "mine", "model": "bert", "max_gpus": 8}`.
        drain: Name or names of nodes.
        add: Shape or shapes of nodes, such as `a100=2x8`.
        policy: That decides from now on.
        placer: That places from now on.
        least_stay_seconds: For which a job stays on its GPUs, such as `30m`; `none` for no bound.
        most_moves_per_hour: After which a job stays on its GPUs; `none` for no bound.
        progress: Whether to show a progress bar, on a terminal or in a notebook.

    >>> import maat
    >>> maat.what_if(client=maat.Client("http://127.0.0.1:9"))
    Traceback (most recent call last):
    ...
    maat.scheduling.errors.ParameterError: change: is missing. Give job, drain, add, policy, placer, least_stay_seconds or most_moves_per_hour.
    """  # noqa: E501
    most = None if most_moves_per_hour is None else str(most_moves_per_hour)
    changes = changes_of(drain, add, policy, placer) | bounds_of(least_stay_seconds, most)
    if not changes and job is None:
        raise ParameterError(
            "is missing",
            field="change",
            remedy="Give job, drain, add, policy, placer, least_stay_seconds or "
            "most_moves_per_hour.",
        )
    asked: dict[str, Any] = {"changes": changes or None, "job": job, "cluster_id": cluster}
    body = {name: value for name, value in asked.items() if value is not None}
    with client_or_here(client) as maat, Bar("forecast", quiet=not progress) as bar:
        return ask(
            maat,
            body,
            tell=lambda now, _: bar.show(int(now["done"]), int(now["total"]), now["message"]),
        )


def changes_of(
    drain: str | Sequence[str], add: str | Sequence[str], policy: str | None, placer: str | None
) -> dict[str, Any]:
    """Return what would be different of the cluster, as a request's fields."""
    given: dict[str, Any] = {
        "drain_nodes": [drain] if isinstance(drain, str) else list(drain),
        "add_shape": add if isinstance(add, str) else ",".join(add),
        "policy": policy,
        "placer": placer,
    }
    return {name: value for name, value in given.items() if value}


def ask(maat: Client, body: Mapping[str, Any], *, tell: Tell) -> WhatIf:
    """Ask a question and follow it to its answer. Raises MaatError if there is none.

    `tell`: called while it lasts, with the operation and the id of the question.
    """
    asked = maat.ask_forecast(dict(body))
    maat.follow(asked["operation_id"], tell=lambda now: tell(now, asked["id"]))
    answer = maat.forecast(asked["id"])
    if answer["state"] != "succeeded":
        detail = (answer["error"] or {}).get("detail", "It was cancelled.")
        raise MaatError(f"There is no forecast: {detail}")
    return WhatIf(answer)


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """A service's answer to a question: tables of both sides, and of the jobs that change.

    `answer` is all that the service says. In a notebook it shows both tables. Made by
    `maat.what_if`.

    >>> import maat
    >>> found = maat.what_if(client=client, policy="fifo")  # a client of a running service
    >>> found.sides["policy"]
    ['sia', 'fifo']
    >>> found.slowed.columns[:3], found.notes[-1][-18:]
    (('job_id', 'name', 'p50_seconds'), ') of each, by P50.')
    """

    answer: ForecastOut

    @property
    def sides(self) -> Table:
        """Two rows, the cluster as it is and as asked: means over its jobs, in seconds from now.

        By P50 of each job's start and end. `later`: how many have no end within 14 days.
        """
        known = (("as it is", self.answer["before"]), ("as asked", self.answer["after"]))
        return Table(
            _SIDES,
            [(name, *_cells(side, list(_SIDES)[1:])) for name, side in known if side is not None],
        )

    @property
    def slowed(self) -> Table:
        """One row per job that ends later or, with negative seconds, earlier than as it is.

        P50 and P90 of the difference over the draws; `share` of the draws in which it ends later.
        Another tenant's job has no name.
        """
        names = ("job_id", "name", "p50_seconds", "p90_seconds", "share")
        kinds: tuple[Kind, ...] = (str, str, float, float, float)
        rows = self.answer["slowed"] or []
        return Table(dict(zip(names, kinds, strict=True)), [_cells(row, names) for row in rows])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know, as sentences."""
        from maat.api.forecasts import means_in_words

        after = self.answer["after"]
        words = "" if after is None else means_in_words(after)
        draws = f"From {self.answer['draws'] or 0} draw(s) of each, by P50."
        return tuple(filter(None, (*(self.answer["notes"] or []), words, draws)))

    def __repr__(self) -> str:
        return f"As it is and as asked, {len(self.slowed)} jobs end later or earlier"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(each)}</p>" for each in self.notes)
        return f"{self.sides.as_html()}{self.slowed.as_html()}{notes}"


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> list[Cell]:
    return [row[name] for name in names]
