"""Gates let so many through at once, in the order of their coming, each by itself."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from backend.problems import Unavailable
from backend.web.gates import Gate


def test_no_more_pass_at_once_than_there_are_places_and_all_pass_in_order() -> None:
    inside, most, order = 0, 0, []

    async def visit(gate: Gate, number: int) -> None:
        nonlocal inside, most
        async with gate.passed():
            inside += 1
            most = max(most, inside)
            order.append(number)
            await anyio.lowlevel.checkpoint()
            inside -= 1

    async def crowd() -> None:
        gate = Gate(3, None)
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(visit, gate, number)

    anyio.run(crowd)

    assert most == 3
    assert order == list(range(40))


def test_a_full_gate_turns_away_who_waits_too_long_and_is_no_other_gate() -> None:
    async def ask() -> None:
        full, other = Gate(1, 0.01), Gate(1, 0.01)
        async with full.passed():
            async with other.passed():
                pass
            with pytest.raises(Unavailable):
                async with full.passed():
                    pass

    anyio.run(ask)
