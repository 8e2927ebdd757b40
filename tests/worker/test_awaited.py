"""Attempts that were told to end are watched between two looks at their cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from worker.engines.protocol import Engine, Phase, Seen, Unreachable
from worker.training.awaited import Awaited, watch

PATIENCE_SECONDS = 30.0


class Ending:
    """An engine on which an attempt is seen to have ended at the so-manieth look."""

    def __init__(self, ends_at_look: int, phase: Phase = Phase.ENDED) -> None:
        self.looks, self._ends_at_look, self._phase = 0, ends_at_look, phase

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        self.looks += 1
        if self._phase is Phase.UNKNOWN:
            raise Unreachable("it is away")
        over = self.looks >= self._ends_at_look
        first, *others = attempt_ids
        return {first: Seen(self._phase if over else Phase.RUNNING)} | {
            each: Seen(Phase.RUNNING) for each in others
        }


def awaited(engine: Ending) -> Awaited:
    return Awaited("clu_1", cast(Engine, engine), ("att_1", "att_2"))


@pytest.mark.parametrize("phase", [Phase.ENDED, Phase.ABSENT])
def test_the_first_end_is_told_once(phase: Phase) -> None:
    engine, told = Ending(3, phase), list[int]()
    watch(awaited(engine), seconds=PATIENCE_SECONDS, then=lambda: told.append(engine.looks)).join()
    assert told == [3]


def test_nothing_is_told_if_none_ends_in_time() -> None:
    engine, told = Ending(1_000_000), list[int]()
    watch(awaited(engine), seconds=0.3, then=lambda: told.append(engine.looks)).join()
    assert told == []


def test_an_engine_that_is_away_ends_the_watch() -> None:
    engine, told = Ending(1, Phase.UNKNOWN), list[int]()
    watch(awaited(engine), seconds=PATIENCE_SECONDS, then=lambda: told.append(1)).join()
    assert (engine.looks, told) == (1, [])


def test_a_later_watch_of_a_cluster_replaces_the_earlier_one() -> None:
    never, told = Ending(1_000_000), list[str]()
    first = watch(awaited(never), seconds=PATIENCE_SECONDS, then=lambda: told.append("first"))
    second = watch(awaited(Ending(1)), seconds=PATIENCE_SECONDS, then=lambda: told.append("second"))
    second.join()
    first.join(PATIENCE_SECONDS)
    assert not first.is_alive()
    assert told == ["second"]
