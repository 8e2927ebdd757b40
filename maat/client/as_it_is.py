"""Changes what was read just before: what a round changes meanwhile is none of the user's doing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

from maat.client.errors import ApiError

T = TypeVar("T")
U = TypeVar("U")

_TRIES = 5


def change_as_it_is(read: Callable[[], T], change: Callable[[T], U]) -> U:
    """Read, then change the version that was read; again if another one is there by then.

    Raises ApiError: what the service says of the change, or of the last of five tries.
    """
    for _ in range(_TRIES - 1):
        try:
            return change(read())
        except ApiError as error:
            _only_another_version(error)
    return change(read())


async def change_as_it_is_async(
    read: Callable[[], Awaitable[T]], change: Callable[[T], Awaitable[U]]
) -> U:
    """Do what `change_as_it_is` does, with coroutines."""
    for _ in range(_TRIES - 1):
        try:
            return await change(await read())
        except ApiError as error:
            _only_another_version(error)
    return await change(await read())


def _only_another_version(error: ApiError) -> None:
    if error.status != HTTPStatus.PRECONDITION_FAILED:
        raise error
