"""What a page asks the service for at once: an answer that fails leaves the others on the page.

    async with api.visitor() as maat:
        usage, prices = await gather(loaded(maat.send(...)), loaded(maat.send(...)))
    return by_part(
        {"tiles": lambda: tiles(usage()), "prices": lambda: prices_table(prices())},
        failed={"tiles": error_state, "prices": error_state},
    )

A part that reads an answer that did not come shows that failure in its own place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import plotly.graph_objects as go

from frontend.api import Failure, error_message
from frontend.callbacks import Changes
from frontend.figures.cluster_map import message
from maat.api.service import MeOut
from maat.client import ApiError, Unreachable
from maat.figures.base import error_figure

T = TypeVar("T")
Draw: TypeAlias = Callable[[], object]
ShowFailure: TypeAlias = Callable[[Exception], object]


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """An answer of the service, or why it did not come. One of the two is None."""

    answer: T | None
    failure: ApiError | Unreachable | None = None

    def __call__(self) -> T:
        """Return the answer.

        Raises:
            ApiError, Unreachable: It did not come.
        """
        if self.failure is not None:
            raise self.failure
        return self.answer  # type: ignore[return-value]  # without a failure it is of T


async def loaded(asked: Awaitable[T]) -> Loaded[T]:
    """Wait for an answer; a failure of the service is kept, and raised where it is read."""
    try:
        return Loaded(await asked)
    except Failure as error:
        return Loaded(None, error)


def by_part(draws: Mapping[str, Draw], *, failed: Mapping[str, ShowFailure]) -> Changes:
    """Draw every output by itself.

    `failed`: what an output shows of the failure of what it reads. An output without a line there
    keeps its value.
    """
    changes: dict[str, object] = {}
    for name, draw in draws.items():
        try:
            changes[name] = draw()
        except Failure as error:
            if name in failed:
                changes[name] = failed[name](error)
    return changes


def may(me: Loaded[MeOut], permission: str) -> bool:
    """Return whether the visitor has this permission; no, as long as that is not known."""
    return me.answer is not None and permission in me.answer["permissions"]


def failed_figure(scheme: str | None, *, height: int | None = None) -> Callable[..., go.Figure]:
    """Return what draws a failure in the place of a chart."""

    def draw(error: Exception) -> go.Figure:
        return error_figure(scheme, *error_message(error), height=height)

    return draw


def failed_map(error: Exception) -> dict[str, object]:
    """A failure in the place of the cluster map."""
    return message(*error_message(error), failed=True)


def nothing(_error: Exception) -> None:
    """What an output shows that is empty as long as its answer has not come."""
