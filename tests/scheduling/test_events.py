"""The life of a job: which state may follow which; and how errors read."""

from __future__ import annotations

from itertools import pairwise

import pytest

from maat.scheduling.errors import (
    ClusterError,
    ContractViolation,
    InputError,
    MaatError,
    TraceError,
    UnknownNameError,
)
from maat.scheduling.events import TERMINAL, TRANSITIONS, may_follow
from maat.vocabulary import JobState

S = JobState


def test_every_state_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(JobState)


def test_what_is_over_stays_over() -> None:
    assert all(not may_follow(ended, after) for ended in TERMINAL for after in JobState)


def test_every_living_job_may_be_cancelled_or_fail() -> None:
    for state in set(JobState) - TERMINAL:
        assert may_follow(state, S.CANCELLED)
        assert may_follow(state, S.FAILED)


@pytest.mark.parametrize(
    "life",
    [
        (S.SUBMITTED, S.PROFILING, S.PENDING, S.STARTING, S.RUNNING, S.SUCCEEDED),
        (
            S.SUBMITTED,
            S.PENDING,
            S.STARTING,
            S.RUNNING,
            S.RESTARTING,
            S.RUNNING,
            S.PREEMPTED,
            S.RESTARTING,
            S.RUNNING,
            S.FAILED,
        ),
        (
            S.PENDING,
            S.PAUSED,
            S.PENDING,
            S.STARTING,
            S.PREEMPTED,
            S.RESTARTING,
            S.PAUSED,
            S.RESTARTING,
            S.SUCCEEDED,
        ),
    ],
)
def test_these_lives_may_be_lived(life: tuple[JobState, ...]) -> None:
    for before, after in pairwise(life):
        assert may_follow(before, after), (before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (S.SUBMITTED, S.RUNNING),
        (S.PENDING, S.RUNNING),
        (S.PENDING, S.SUCCEEDED),
        (S.PREEMPTED, S.SUCCEEDED),
        (S.RUNNING, S.STARTING),
        (S.PREEMPTED, S.STARTING),
        (S.RUNNING, S.SUBMITTED),
    ],
)
def test_these_steps_are_never_taken(before: JobState, after: JobState) -> None:
    assert not may_follow(before, after)


def test_every_state_can_be_reached_and_every_life_can_end() -> None:
    def reachable(start: JobState) -> set[JobState]:
        found, todo = {start}, [start]
        while todo:
            fresh = TRANSITIONS[todo.pop()] - found
            found |= fresh
            todo += fresh
        return found

    assert reachable(S.SUBMITTED) == set(JobState)
    assert all(reachable(state) & TERMINAL for state in JobState)


def test_an_input_error_says_where_what_which_value_and_what_to_do() -> None:
    error = TraceError(
        "is negative",
        field="time",
        value="-3",
        remedy="Give seconds from 0 up.",
        source="jobs.csv",
        row=7,
    )
    assert str(error) == "jobs.csv, row 7: time: is negative (got '-3'). Give seconds from 0 up."
    assert (error.problem, error.field, error.value, error.row, error.source) == (
        "is negative",
        "time",
        "-3",
        7,
        "jobs.csv",
    )


def test_what_is_absent_is_not_mentioned() -> None:
    assert (
        str(InputError("is missing", field="trace", remedy="Name a file."))
        == "trace: is missing. Name a file."
    )
    assert (
        str(InputError("is odd", field="x", value=1, row=2, remedy="Fix it."))
        == "row 2: x: is odd (got 1). Fix it."
    )


def test_a_long_value_is_shown_in_part() -> None:
    text = str(InputError("is too long", field="name", value="a" * 10_000, remedy="Shorten it."))
    assert len(text) < 200
    assert "..." in text


def test_bad_input_and_bugs_are_different_errors() -> None:
    assert issubclass(UnknownNameError, InputError)
    assert issubclass(ClusterError, InputError)
    assert issubclass(ContractViolation, MaatError)
    assert not issubclass(ContractViolation, InputError)
