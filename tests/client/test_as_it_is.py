"""Tests of changes that a round may come before."""

from __future__ import annotations

import asyncio

import pytest

from maat.client import ApiError, change_as_it_is, change_as_it_is_async


def change_at(version: int, *, refusal: int = 412) -> tuple[list[int], int | ApiError]:
    """Change something whose version grows with each reading; the change fits `version`."""
    read: list[int] = []

    def look() -> int:
        read.append(len(read))
        return read[-1]

    def change(seen: int) -> int:
        if seen != version:
            raise ApiError(status=refusal, title="no")
        return seen

    try:
        return read, change_as_it_is(look, change)
    except ApiError as error:
        return read, error


@pytest.mark.parametrize("version", [0, 1, 4])
def test_what_changes_meanwhile_is_read_again(version: int) -> None:
    assert change_at(version) == (list(range(version + 1)), version)


def test_it_is_not_tried_for_ever() -> None:
    read, error = change_at(99)
    assert isinstance(error, ApiError)
    assert len(read) == 5


def test_another_refusal_is_told_at_once() -> None:
    read, error = change_at(99, refusal=403)
    assert isinstance(error, ApiError)
    assert read == [0]


def test_coroutines_are_tried_alike() -> None:
    read: list[int] = []

    async def look() -> int:
        read.append(len(read))
        return read[-1]

    async def change(seen: int) -> int:
        if seen < 2:
            raise ApiError(status=412, title="no")
        return seen

    assert asyncio.run(change_as_it_is_async(look, change)) == 2
    assert read == [0, 1, 2]
