"""The passes of a step: in which one the loop is, and whether the script does the same in each.

The script sees every pass as a batch, and its loop runs once for each. What it does once a step
must then have its effect at the last pass alone. So each call is counted, and a pass that does
something else than the first of its step ends the training: a script that counts batches by itself
would count passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from maat.agent.script import ScriptError

GRADIENT, STEP = "backward()", "optimiser.step()"


class Passes:
    """Where in a step the script is.

    Attributes:
        weights: The share of each pass in the samples of the step.
        is_under_way: The script works on a batch of the loader.
        are_counted: The script has asked for the number of steps in this pass.
        is_skipped: The gradient scaler has left the optimiser's step out.
    """

    def __init__(self) -> None:
        self.weights: Sequence[float] = (1.0,)
        self.index = 0
        self.is_under_way = self.are_counted = self.is_skipped = False
        self._calls, self._first = Counter[str](), Counter[str]()
        self._usual: Counter[str] | None = None  # the other calls of the loop's last step

    @property
    def are_several(self) -> bool:
        return len(self.weights) > 1

    @property
    def is_split(self) -> bool:
        """Return whether the script works on a part of a step."""
        return self.is_under_way and self.are_several

    @property
    def is_first(self) -> bool:
        return self.index == 0

    @property
    def is_last(self) -> bool:
        """Return whether what the script does now counts: it does outside the loop, too."""
        return not self.is_under_way or self.index == len(self.weights) - 1

    @property
    def has_stepped(self) -> bool:
        """Return whether the script has called optimiser.step() in this pass."""
        return self._calls[STEP] > 0

    def begin_loop(self) -> None:
        self._usual = None

    def begin_step(self, sizes: Sequence[int]) -> None:
        """Begin a step whose passes have so many samples each."""
        self.weights = [size / sum(sizes) for size in sizes]

    def begin(self, index: int) -> None:
        """Begin a pass."""
        self.index, self.is_under_way = index, True
        self.are_counted = self.is_skipped = False
        self._calls = Counter()

    def note(self, call: str) -> None:
        """Count a call. Raises ScriptError for a second step in one pass of several."""
        if call == GRADIENT:
            self._note_gradient()
        elif call == STEP:
            self._note_step()
        else:
            self._calls[call] += 1

    def end(self) -> None:
        """End a pass. Raises ScriptError if it is not like the others."""
        if self.are_several:
            self._check()
        if self.is_first:
            self._first = self._calls
        if self.is_last and self.has_stepped and not self.is_skipped:
            self._usual = _others(self._calls)
        self.is_under_way = False

    def leave(self) -> None:
        """Note that the script has no batch any more."""
        self.is_under_way = False

    def error(self, words: str) -> ScriptError:
        """Return what to raise; the step is not gone on with."""
        count, number = len(self.weights), self.index + 1
        self.is_under_way = False
        return ScriptError(f"{words} (Pass {number} of {count}.)" if count > 1 else words)

    def _note_gradient(self) -> None:
        if self.is_split and self.has_stepped:
            raise self.error(
                "this backward() comes after optimiser.step() for the same batch, and its "
                "gradient would be added to the step's: call it before, or for weights that "
                "adapt() was not given."
            )
        self._calls[GRADIENT] = 1

    def _note_step(self) -> None:
        if self.is_split and self.has_stepped:
            raise self.error(
                "this is the second optimiser.step() for one batch, and its gradient would be "
                "mixed with the first one's: take one step for each batch of the loader."
            )
        self._calls[STEP] += 1
        if self.is_split and not self.is_first:
            for call in (GRADIENT, STEP):
                self._compare(call, self._first)

    def _check(self) -> None:
        calls = self._calls
        if calls[GRADIENT] and not calls[STEP] and not self.is_last:
            raise self.error(
                "the loop called backward() for a batch, and no optimiser.step(): a script's own "
                "accumulation counts passes as batches. Leave it out: give the DataLoader the "
                "batch size of a whole step, and call optimiser.step() for each batch, with a "
                "loss that is not divided."
            )
        if self.is_skipped:  # a script may leave its schedule out, too
            return
        if not self.is_first:
            for call in [*calls, *self._first]:
                self._compare(call, self._first)
        elif self._usual is not None and self.has_stepped:
            others = _others(calls)
            for call in [*others, *self._usual]:
                self._compare(call, self._usual)

    def _compare(self, call: str, before: Counter[str]) -> None:
        """Raise ScriptError if a pass has not made a call as often as one before it."""
        if self._calls[call] != before[call]:
            raise self.error(
                f"the loop called {call} {_times(self._calls[call])} for this batch, and "
                f"{_times(before[call])} for an earlier one. All passes of a step must do the "
                "same: what counts batches counts passes. Leave no batch out; to accumulate, give "
                "the DataLoader the batch size of a whole step; count steps by job.steps."
            )


def _others(calls: Counter[str]) -> Counter[str]:
    return Counter({call: count for call, count in calls.items() if call not in (GRADIENT, STEP)})


def _times(count: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")
