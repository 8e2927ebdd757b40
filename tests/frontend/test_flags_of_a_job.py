"""The card of a job's flags: what is unlikely, and a button for who may dismiss it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from frontend.pages.job.flags import flags_view, is_flagged
from maat.api.job_answers import JobOut
from maat.api.job_words import WHILE_FLAGGED

FLAG = {
    "kind": "speed",
    "sentence": "Its steps are <short>.",
    "attempt": 2,
    "at": "2026-11-20T08:00:00.000Z",
    "dismissed_at": None,
    "dismissed_by": None,
}
DISMISSED = {**FLAG, "dismissed_at": "2026-11-20T09:00:00.000Z", "dismissed_by": "ann"}


def job(*flags: dict[str, Any]) -> JobOut:
    return cast(JobOut, {"flags": list(flags)})


@pytest.mark.parametrize("may_dismiss", [True, False])
def test_a_flag_is_said_to_all_and_dismissed_by_who_may(may_dismiss: bool) -> None:
    shown = str(flags_view(job(FLAG), may_dismiss=may_dismiss))
    assert "Its steps are <short>." in shown
    assert WHILE_FLAGGED in shown
    assert ("job-flag-speed" in shown) == may_dismiss


def test_a_dismissed_flag_says_by_whom_and_has_no_button() -> None:
    assert not is_flagged(job(DISMISSED))
    shown = str(flags_view(job(DISMISSED), may_dismiss=True))
    assert "Dismissed by ann" in shown
    assert "job-flag-speed" not in shown
    assert WHILE_FLAGGED not in shown
    assert flags_view(job(), may_dismiss=True) is None
