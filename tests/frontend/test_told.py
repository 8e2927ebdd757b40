"""What pages say in words: reserved GPUs beside free ones, names, and what one may not see."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.components.cards import error_state
from frontend.components.names import isolated
from frontend.pages.cluster.parts import free_table
from frontend.pages.cluster.reservations import reserved_now
from frontend.pages.cluster.told import verdict_of
from maat.client import ApiError

HELD, FREE = {"held": True}, {"held": False}
STATE: Any = {
    "gpus": [HELD, FREE, FREE],
    "free_by_type": {"a100": 2},
    "largest_free_on_one_node": {"a100": 2},
    "faults": {},
}


def test_gpus_that_are_reserved_are_told_beside_the_free_ones() -> None:
    booked: Any = [
        {"gpu_type": "a100", "gpu_count": 1, "state": "active"},
        {"gpu_type": "a100", "gpu_count": 3, "state": "active"},
        {"gpu_type": "t4", "gpu_count": 2, "state": "upcoming"},
        {"gpu_type": "t4", "gpu_count": 2, "state": "over"},
    ]

    reserved = reserved_now(booked)

    assert reserved == {"a100": 4}
    free = "1 of 3 GPUs held, 2 free: at most 2 × a100 together."
    assert verdict_of(STATE, reserved) == f"{free} Reserved: 4 × a100."
    assert verdict_of(STATE, {}) == free
    assert "Reserved" in str(free_table(None, STATE, reserved))
    assert "Reserved" not in str(free_table(None, STATE, {}))


def test_a_mark_of_direction_in_a_name_ends_with_it() -> None:
    assert isolated("\u202eevil") == "\u2068\u202eevil\u2069"


@pytest.mark.parametrize(("status", "offers"), [(403, "What you may do"), (503, "Try again")])
def test_who_may_not_see_a_part_is_not_told_to_try_again(status: int, offers: str) -> None:
    shown = str(error_state(ApiError(status=status, title="Refused")))

    assert offers in shown
    assert ("Try again" in shown) is (status != 403)
