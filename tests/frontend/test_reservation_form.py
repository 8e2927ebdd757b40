"""Tests of reservations on pages: their form, and beside free GPUs; and what all forms offer."""

from __future__ import annotations

from typing import Any

import pytest

from backend import pagination
from frontend.components.conditions import (
    DRAW,
    MAX_JOBS_PER_GPU,
    MAX_TUNED_GPUS,
    PROFILING,
    TUNED,
)
from frontend.components.reservation_fields import unfinished_reservation
from frontend.components.trace_fields import FAMILIES, MAX_TRACES
from frontend.pages import simulate
from frontend.pages.cluster.parts import free_table
from frontend.pages.cluster.reservations import body_of as reservation_body
from frontend.pages.cluster.reservations import preview_of, reserved_now
from frontend.pages.cluster.summary import verdict_of
from frontend.pages.jobs.blocks import BLOCK_ROWS
from maat.api import simulations as schemas
from maat.scheduling import cluster
from maat.vocabulary import ProfilingMode, ScoreDraw, TuningRule
from maat.workloads import generators

HELD, FREE = {"held": True}, {"held": False}
STATE: Any = {
    "gpus": [HELD, FREE, FREE],
    "free_by_type": {"a100": 2},
    "largest_free_on_one_node": {"a100": 2},
    "faults": {},
}


def test_the_pages_offer_what_the_service_takes_and_no_more() -> None:
    assert {value for value, _ in PROFILING} == {"fidelity", *ProfilingMode}
    assert {value for value, _ in TUNED} == {"none", *TuningRule}
    assert {value for value, _ in DRAW} == {"fidelity", *ScoreDraw}
    assert {value for value, _ in FAMILIES} <= set(generators.FAMILY_NAMES)
    assert (simulate.MAX_RUNS, MAX_TRACES) == (schemas.MAX_RUNS, schemas.MAX_TRACES)
    assert BLOCK_ROWS <= pagination.MAX_LIMIT
    assert (MAX_JOBS_PER_GPU, MAX_TUNED_GPUS) == (cluster.MAX_JOBS_PER_GPU, schemas.MAX_TUNED_GPUS)


def test_a_reservation_says_before_whether_jobs_have_to_leave_their_gpus() -> None:
    one = {"gpu_type": "a100", "held": True, "tenant": "vision", "job_id": "job_1"}
    one |= {"shared_with": []}
    state: Any = {
        "capacity_by_type": {"t4": 24, "a100": 16},
        "free_by_type": {"a100": 3},
        "gpus": [
            *[one] * 5,
            *[one | {"tenant": "speech", "job_id": "job_2"}] * 8,
            *[one | {"held": False, "tenant": None, "job_id": None}] * 3,
            one | {"gpu_type": "t4"},
        ],
    }

    def preview(**changed: Any) -> str:
        usual = {"type": "a100", "gpus": 8, "for": "tenant", "holder": "vision"}
        return preview_of(state, usual | changed)

    free = "3 of 16 × a100 are free now."
    assert preview(type="") == "Free now: 0 of 24 × t4, 3 of 16 × a100."
    assert [preview(gpus=gpus) for gpus in ("", 0, 17)] == [free] * 3
    assert preview(holder=" ") == free
    held = f"{free} Jobs of others hold 8 and may hold 8 once it has begun"
    assert preview() == f"{held}: none has to leave its GPUs."
    assert "hold 13 and may hold 8" in preview(holder="nobody")
    assert "takes 5 back" in preview(holder="nobody")
    assert "hold 5 and may hold 4" in preview(**{"for": "job", "holder": "job_2", "gpus": 12})


def test_a_gpu_that_the_holder_shares_with_another_is_held_by_others_too() -> None:
    mine = {"job_id": "job_1", "tenant": "vision"}
    others = {"job_id": "job_2", "tenant": "speech"}
    of_type = {"gpu_type": "a100", "held": True}
    state: Any = {
        "capacity_by_type": {"a100": 4},
        "free_by_type": {"a100": 0},
        "gpus": [
            of_type | mine | {"shared_with": [others]},
            of_type | others | {"shared_with": [mine]},
            of_type | mine | {"shared_with": [mine | {"job_id": "job_3"}]},
            of_type | mine | {"shared_with": []},
        ],
    }

    def preview(**fields: Any) -> str:
        return preview_of(state, {"type": "a100", "gpus": 3, **fields})

    by_tenant = preview(**{"for": "tenant", "holder": "vision"})
    assert "Jobs of others hold 2 and may hold 1" in by_tenant
    assert "takes 1 back" in by_tenant
    assert "Jobs of others hold 3 and may hold 1" in preview(**{"for": "job", "holder": "job_1"})


def test_a_live_reservation_counts_its_hours_on_the_clock_of_the_cluster() -> None:
    values = {"type": "a100", "gpus": 4, "for": "job", "holder": " job_1 ", "from": 0, "until": 1.5}

    now = reservation_body(values, now="2026-11-20T12:00:00.000Z")
    later = reservation_body(
        {**values, "for": "tenant", "holder": "vision", "from": 2, "until": ""},
        now="2026-11-20T12:00:00.000Z",
    )

    assert now == {
        "gpu_type": "a100",
        "gpu_count": 4,
        "job_id": "job_1",
        "end_at": "2026-11-20T13:30:00+00:00",
    }
    assert later == {
        "gpu_type": "a100",
        "gpu_count": 4,
        "tenant": "vision",
        "start_at": "2026-11-20T14:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": " "}, "GPU type"),
        ({"gpus": ""}, "how many GPUs"),
        ({"holder": ""}, "tenant"),
        ({"gpus": 0}, "from 1 up"),
        ({"from": -5}, "from 0 up"),
        ({"from": 2, "until": 2}, "end after"),
    ],
)
def test_a_reservation_that_lacks_something_says_what(change: dict[str, Any], words: str) -> None:
    values = {
        "type": "a100",
        "gpus": 4,
        "for": "tenant",
        "holder": "vision",
        "from": 0,
        "until": "",
    }

    field = list(change)[-1]  # what else changes is beside it
    assert unfinished_reservation(values) == {}
    assert words in unfinished_reservation({**values, **change})[field]


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
