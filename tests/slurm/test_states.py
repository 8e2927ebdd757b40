"""States of nodes: which serve, which only sleep, which are out of service, which do not exist."""

from __future__ import annotations

import pytest

from maat.slurm.states import node_state, state_words

SERVES = (
    *("idle", "IDLE", "mix", "mixed-", "alloc", "allocated", "comp", "completing", "planned"),
    *("plnd", "resv", "reserved", "MIXED+PLANNED", "IDLE+RESERVED", "IDLE+CLOUD"),
    *(["IDLE"], ["MIXED", "PLANNED"], ["ALLOCATED", "COMPLETING"], ["IDLE", "DYNAMIC_NORM"]),
)
ASLEEP = (
    *("idle~", "idle#", "idle%", "alloc#", "mix!", "powered_down", "powering_up", "pow_dn"),
    *("IDLE+CLOUD+POWERED_DOWN", "IDLE+CLOUD+NOT_RESPONDING+POWERING_UP", "IDLE+POWERING_DOWN"),
    *(["IDLE", "CLOUD", "POWERED_DOWN"], ["ALLOCATED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"]),
)
OUT = (
    *("down", "down*", "drain", "drain*", "drng", "drained", "draining@", "fail", "failg", "maint"),
    *("idle*", "idle$", "idle@", "idle^", "boot", "inval", "error", "blocked", "down~"),
    *("IDLE+DRAIN", "DOWN+DRAIN+NOT_RESPONDING", "IDLE+MAINTENANCE", "DOWN+CLOUD+POWERED_DOWN"),
    *(["IDLE", "DRAIN"], ["MIXED", "INVALID_REG"], ["IDLE", "DRAIN", "POWERED_DOWN"]),
)


@pytest.mark.parametrize("value", SERVES, ids=str)
def test_a_node_serves_if_nothing_speaks_against_it(value: object) -> None:
    state = node_state(value)
    assert (state.serves, state.is_asleep, state.is_out) == (True, False, False)


@pytest.mark.parametrize("value", ASLEEP, ids=str)
def test_a_node_that_saves_power_serves_and_sleeps(value: object) -> None:
    state = node_state(value)
    assert (state.serves, state.is_asleep, state.is_out) == (True, True, False)


@pytest.mark.parametrize("value", OUT, ids=str)
def test_a_node_that_is_out_of_service_neither_serves_nor_sleeps(value: object) -> None:
    state = node_state(value)
    assert (state.serves, state.is_asleep, state.is_out) == (False, False, True)


@pytest.mark.parametrize("value", [None, "", [], "unknown", ["UNKNOWN"], "NEW_WORD"])
def test_a_state_that_says_nothing_speaks_neither_for_nor_against_a_node(value: object) -> None:
    state = node_state(value)
    assert (state.serves, state.is_out) == (False, False)


def test_flags_of_older_versions_stand_beside_the_state() -> None:
    assert node_state("idle", ["DRAIN"]).is_out
    assert str(node_state("idle", ["DRAIN", "IDLE"])) == "IDLE+DRAIN"


def test_a_node_of_the_future_does_not_exist() -> None:
    assert node_state(["IDLE", "FUTURE"]).is_future
    assert node_state("futr").is_future
    assert not node_state("idle").is_future


@pytest.mark.parametrize("value", ["CANCELLED+COMPLETING", ["CANCELLED", "COMPLETING"]])
def test_the_words_of_a_job_are_text_or_a_list(value: object) -> None:
    assert state_words(value) == ["CANCELLED", "COMPLETING"]
