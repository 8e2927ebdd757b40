"""Moments on the command line."""

from __future__ import annotations

import pytest

from maat.cli.moments import moment


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (None, None),
        ("2026-11-02", "2026-11-02T00:00:00Z"),
        ("2026-11-02T12:00:00Z", "2026-11-02T12:00:00Z"),
        ("2026-13-02", "2026-13-02"),
        ("yesterday!", "yesterday!"),
    ],
)
def test_a_day_begins_at_midnight_and_the_service_judges_the_rest(
    given: str | None, sent: str | None
) -> None:
    assert moment(given) == sent
