"""Watches what the script does with weights in a step of several passes.

Before optimiser.step() it may not change them. Behind one that was left out, an average of weights
would be taken once a pass, of weights that have not moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from maat.agent.passes import Passes

_COPIES = {"aten::clone", "aten::_to_copy"}  # to keep, or to show


class _Watch(TorchDispatchMode):
    """Raises ScriptError for what changes weights, or takes them into an average."""

    def __init__(self, passes: Passes, parameters: Sequence[Any]) -> None:
        super().__init__()
        self._passes = passes
        self._places = {_place(each) for each in parameters} - {0}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        read = [each for each in tree_leaves((args, kwargs)) if self._is_weight(each)]
        read = [each for each in read if each.is_floating_point()]  # else bytes that are copied
        written = _written(func._schema, args, kwargs or {}) if read else []
        if any(self._is_weight(each) for each in written):
            raise self._error()
        found = func(*args, **(kwargs or {}))
        if read and _is_by_element(func):
            likes = {(each.shape, each.dtype) for each in read if each.dim()}
            made = [each for each in tree_leaves(found) if isinstance(each, torch.Tensor)]
            if any((each.shape, each.dtype) in likes for each in [*made, *written]):
                raise self._error()
        return found

    def _is_weight(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and _place(value) in self._places

    def _error(self) -> Exception:
        return self._passes.error(
            "the loop changes weights, or averages them, after optimiser.step(): once a pass, "
            "where the weights have not moved. Register it, before the loop, to be called after "
            "real steps only: optimiser.register_step_post_hook(lambda *_: ...)."
        )


class WeightWatch:
    """Compares weights from a batch to optimiser.step(); watches what is done behind that.

    The latter in passes that are not the last, to the next batch.
    """

    def __init__(self, passes: Passes, parameters: Sequence[Any]) -> None:
        self._passes, self._parameters = passes, parameters
        self._mode: _Watch | None = None
        self._versions: list[int] = []
        self._norms: list[torch.Tensor] = []
        self._are_changed: list[torch.Tensor] = []  # on their devices: read once a step

    def begin_step(self) -> None:
        self._are_changed = []

    def begin_pass(self) -> None:
        if self._passes.are_several:
            self._versions = [each._version for each in self._parameters]
            self._norms = self._read_norms()

    def start(self) -> None:
        """Watch from here on, in a pass that is not the last."""
        if self._mode is None and self._passes.is_split and not self._passes.is_last:
            self._mode = _Watch(self._passes, self._parameters)
            self._mode.__enter__()

    def end(self) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)

    def check_unchanged(self) -> None:
        """Raise ScriptError if weights have changed before the optimiser has stepped."""
        passes = self._passes
        if not passes.is_split or (passes.is_last and passes.has_stepped):
            return
        self._are_changed += [
            ((one != other) & ~one.isnan()).any()
            for one, other in zip(self._norms, self._read_norms(), strict=True)
        ]
        is_changed = self._versions != [each._version for each in self._parameters]
        if is_changed or (passes.is_last and any(map(bool, self._are_changed))):
            raise passes.error(
                "the loop has changed the model's weights by itself: that happens once a pass. "
                "Register it, before the loop, to be called before or after real steps only: "
                "optimiser.register_step_pre_hook(...), register_step_post_hook(...)."
            )

    def _read_norms(self) -> list[torch.Tensor]:
        """Return the norms of all weights: they tell of changes by `.data`, which versions do not.

        One call for all of a kind reads the weights once, and waits for no device.
        """
        kinds: dict[Any, list[Any]] = {}
        for each in self._parameters:
            if each.layout == torch.strided and each.is_floating_point() and each.numel():
                kinds.setdefault((each.device, each.dtype), []).append(each.detach())
        return [
            torch.stack(torch._foreach_norm(each, 2, dtype=torch.promote_types(kind, torch.float)))
            for (_, kind), each in kinds.items()
        ]


def _is_by_element(func: Any) -> bool:
    name = func._schema.name
    return name not in _COPIES and (
        torch.Tag.pointwise in func.tags or "_foreach_" in name or name == "aten::copy_"
    )


def _written(schema: Any, args: Sequence[Any], kwargs: Any) -> list[Any]:
    """Return the tensors that an operation writes to."""
    given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)}
    given.update(kwargs)
    places = [
        each.name for each in schema.arguments if each.alias_info and each.alias_info.is_write
    ]
    written: list[Any] = tree_leaves([given.get(name) for name in places])
    return written


def _place(tensor: Any) -> int:
    """Return where a tensor's numbers are; 0 for one that has none of its own."""
    if tensor.layout != torch.strided:
        return 0
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):  # a tensor that is only described
        return 0
