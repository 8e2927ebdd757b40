"""Slowdowns by the names of jobs: sources in order, the nearest batch and GPU count."""

from __future__ import annotations

import math

import pytest

from maat.scheduling.interference import SharingJob, SlowdownsByName, nearest
from maat.simulation.interference import Interference

SMALL, LARGE, OTHER = SharingJob("a", 16), SharingJob("a", 64), SharingJob("b (x)", 8)
TABLE = Interference(
    "t",
    {
        ("a (batch size 32)", "b (x)"): {1: 1.5, 4: 1.75},
        ("b (x)", "a (batch size 32)"): {1: math.inf},
        ("a (batch size 32)", "a (batch size 32)"): {2: 1.25},
    },
)


def test_a_name_says_model_and_batch_and_is_read_again() -> None:
    assert OTHER.name == "b (x) (batch size 8)"
    assert SharingJob.named(OTHER.name) == OTHER
    theirs = SharingJob("a (batch size 3) of ten_1", 8, "ten_2")
    assert SharingJob.named(theirs.name) == theirs
    with pytest.raises(KeyError):
        SharingJob.named("b (x)")


def test_a_table_answers_for_the_next_smaller_batch_and_count() -> None:
    assert nearest(5, [2, 4, 8]) == 4
    assert nearest(1, [2, 4]) == 2
    known = SlowdownsByName(TABLE)
    assert known[LARGE.name, OTHER.name, 3] == 1.5
    assert known[SMALL.name, OTHER.name, 8] == 1.75
    assert known.get((OTHER.name, OTHER.name, 1)) is None
    assert known.get((OTHER.name, LARGE.name, 1)) == math.inf


def test_what_was_measured_comes_before_what_was_declared() -> None:
    measured = Interference("m", {("a", "a"): {1: 2.5}})
    known = SlowdownsByName(measured, Interference.constant(1.25))
    assert known[SMALL.name, LARGE.name, 1] == 2.5
    assert known[SMALL.name, OTHER.name, 1] == 1.25


def test_a_pair_that_does_not_fit_or_is_not_known_runs_at_the_worst_slowdown() -> None:
    truth = SlowdownsByName(TABLE.bounded(), otherwise=TABLE.worst)
    assert truth[OTHER.name, LARGE.name, 1] == 1.75
    assert truth[OTHER.name, OTHER.name, 1] == 1.75
    assert truth[LARGE.name, LARGE.name, 1] == 1.25
