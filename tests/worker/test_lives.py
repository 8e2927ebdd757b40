"""Tests of how a job's life was spent: seconds by part, and reasons of its waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maat.vocabulary import JobState
from worker.fairness.lives import PARTS, At, life_spent


def test_every_second_of_a_life_has_its_part_and_every_wait_its_reason() -> None:
    states = [
        At(10.0, "profiling"),
        At(30.0, "pending"),
        At(100.0, "starting"),
        At(120.0, "running"),
        At(200.0, "preempted"),
        At(260.0, "restarting"),
        At(270.0, "running"),
        At(400.0, "succeeded"),
    ]
    reasons = [
        At(20.0, "PROFILE_INCOMPLETE"),
        At(60.0, "WAITING_CAPACITY"),
        At(230.0, "LOWER_GOODPUT_GAIN"),
    ]
    spent = life_spent(states, reasons, submitted=0.0, finished=400.0)
    assert spent == {
        "waiting_seconds": 10.0 + 70.0 + 60.0,
        "profiling_seconds": 20.0,
        "paused_seconds": 0.0,
        "starting_seconds": 30.0,
        "running_seconds": 210.0,
        "preemptions": 1,
        "starts": 2,
        "reasons": [
            {"code": "WAITING_CAPACITY", "seconds": 40.0 + 30.0},
            {"code": "PROFILE_INCOMPLETE", "seconds": 10.0 + 30.0},
            {"code": "LOWER_GOODPUT_GAIN", "seconds": 30.0},
            {"code": "NOT_YET_CONSIDERED", "seconds": 20.0},
        ],
    }


def test_a_job_that_ended_at_once_spent_nothing() -> None:
    spent = life_spent([At(5.0, "cancelled")], [], submitted=5.0, finished=5.0)
    assert not any(spent[f"{part}_seconds"] for part in PARTS)
    assert spent["reasons"] == []


living = st.sampled_from([state.value for state in JobState if state.value not in {"succeeded"}])


@given(st.lists(st.tuples(st.floats(0, 1000), living), max_size=12))
def test_the_parts_sum_to_the_life_whatever_happened(changes: list[tuple[float, str]]) -> None:
    ended = {"failed", "cancelled"}
    alive = [At(at, state) for at, state in sorted(changes) if state not in ended]
    spent = life_spent(alive, [], submitted=0.0, finished=1000.0)
    total = sum(float(str(spent[f"{part}_seconds"])) for part in PARTS)
    assert abs(total - 1000.0) < 1e-6
