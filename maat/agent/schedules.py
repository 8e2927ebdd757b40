"""The script's schedules of the learning rate: they move once a step, not once a pass."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from maat.agent.passes import Passes


class Schedules:
    """Stands between the script and its schedulers while the loop runs.

    Attributes:
        due: How many steps of the initial batch size this step is worth: so far a scheduler moves.
    """

    def __init__(self, passes: Passes, optimiser: Any, outer: Any) -> None:
        """`optimiser`: torch's; `outer`: what the script has for it."""
        self.due = 1
        self._passes, self._optimiser, self._outer = passes, optimiser, outer
        self._schedulers: dict[int, Any] = {}
        self._gated: dict[int, Any] = {}
        self._is_moving = False
        self._settings: list[dict[str, Any]] = []

    def add(self, scheduler: Any) -> None:
        """Take over a scheduler that is saved with the job."""
        self._schedulers[id(scheduler)] = scheduler
        self._gate(scheduler)

    def look_for_others(self) -> None:
        """Find schedulers of this optimiser that adapt() was not given."""
        own = (self._optimiser, self._outer)
        holders = gc.get_referrers(*own)
        # Python keeps attributes in an object, or in a dictionary that only the object refers to.
        attributes = [each for each in holders if type(each) is dict and "optimizer" in each]
        for each in [*holders, *gc.get_referrers(*attributes)]:
            if issubclass(type(each), LRScheduler) and any(each.optimizer is one for one in own):
                self._gate(each)

    def begin_pass(self) -> None:
        if self._passes.are_several:
            self._settings = self._read()

    def check_unmoved(self) -> None:
        """Raise ScriptError if something else than a known scheduler has changed a setting."""
        if not self._passes.is_split or self._settings == (now := self._read()):
            return
        names = [
            name
            for before, after in zip(self._settings, now, strict=False)
            for name in after
            if before.get(name) != after[name]
        ]
        raise self._passes.error(
            f"the loop has changed the optimiser's {(names or ['groups'])[0]} by itself: that "
            "happens once a pass. Give a torch scheduler to job.adapt(model, optimiser, loader, "
            "scheduler), and call its step() for each batch; or change it between epochs."
        )

    def _read(self) -> list[dict[str, Any]]:
        """Return the settings of each group of weights, with tensors as numbers."""
        return [
            {
                name: float(value) if isinstance(value, torch.Tensor) else value
                for name, value in group.items()
                if name != "params"
            }
            for group in self._optimiser.param_groups
        ]

    def _gate(self, scheduler: Any) -> None:
        """Have calls of step() come here. A class of its own: torch saves all attributes."""
        if id(scheduler) in self._gated:
            return
        kind, pass_on = type(scheduler), self._step

        def step(self: Any, *arguments: Any, **named: Any) -> Any:
            return pass_on(self, lambda: kind.step(self, *arguments, **named), arguments or named)

        self._gated[id(scheduler)] = scheduler
        content = {"step": step, "__slots__": (), "__module__": kind.__module__}
        scheduler.__class__ = type(kind.__name__, (kind,), content)

    def _step(self, scheduler: Any, step: Callable[[], Any], arguments: Any) -> Any:
        passes = self._passes
        if self._is_moving or not passes.is_under_way:
            return self._move(step)
        is_known = id(scheduler) in self._schedulers
        is_by_value = bool(arguments) or isinstance(scheduler, ReduceLROnPlateau)
        if passes.are_several:
            self._check(is_known=is_known, is_by_value=is_by_value)
        elif not is_known or is_by_value:
            return self._move(step)
        passes.note(f"{type(scheduler).__name__}.step()")
        if passes.is_last:
            for _ in range(self.due):
                self._move(step)
        return None

    def _check(self, *, is_known: bool, is_by_value: bool) -> None:
        if not is_known:
            raise self._passes.error(
                "this scheduler would step once a pass: make it before adapt(), and give it: "
                "job.adapt(model, optimiser, loader, scheduler), a second one by "
                "job.keep(name, scheduler). It is saved with the job then, too."
            )
        if is_by_value:
            raise self._passes.error(
                "this scheduler steps by a number that the loop has for one pass alone: call "
                "step() without arguments for each batch, or step it after each epoch."
            )

    def _move(self, step: Callable[[], Any]) -> Any:
        with self._moving():
            found = step()
        if self._passes.is_split:
            self._settings = self._read()
        return found

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """Let a scheduler step those that it is made of."""
        was, self._is_moving = self._is_moving, True
        try:
            yield
        finally:
            self._is_moving = was
