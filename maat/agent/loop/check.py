"""Stops a loop that makes something of a number of batches, ahead of a step of several passes.

What is not seen: what a library keeps in its own objects, and a script without a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from maat.agent.loop.effects import Reached
from maat.agent.loop.reading import Reading
from maat.agent.loop.source import LoopAt, loops_at_work
from maat.agent.loop.values import Objects, Value
from maat.agent.script import ScriptError
from maat.agent.words import say


class LoopCheck:
    """Reads each loop over the loader once."""

    def __init__(self, parameters: Iterable[Any], dataset: Any) -> None:
        self._objects = Objects(parameters, dataset)
        self._read: set[Any] = set()
        self._has_warned = False

    def check(self) -> None:
        """Read the loop that asks for a batch now. Raises ScriptError."""
        loops = loops_at_work()
        if loops is None:
            self._warn("its source is not there")
            return
        place = tuple((each.code, each.node.lineno) for each in loops)
        if place in self._read:
            return
        self._read.add(place)
        try:
            self._check(loops)
        except Reached as reached:
            raise ScriptError(reached.words, at=(reached.file, reached.line)) from None
        except Exception as error:  # training must not end for a script that is not understood
            self._warn(f"reading it failed with {type(error).__name__}: {error}")

    def _check(self, loops: Iterable[LoopAt]) -> None:
        given = Value(is_of_batch=True)
        for loop in loops:
            given = Reading(self._objects).read_loop(loop, given)

    def _warn(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            say(
                f"the loop of the script was not read ({why}): if a number of batches, or what is "
                "kept from one batch to the next, changes what is trained, this is not seen. A "
                "step has several batches here: count steps by job.steps"
            )
