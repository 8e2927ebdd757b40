"""Reads the calls of the script's loop: goes into functions of the script, not of libraries."""

from __future__ import annotations

import ast
import inspect
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch

from maat.agent.loop.expressions import Expressions, found_outside
from maat.agent.loop.scope import Memory, Scope
from maat.agent.loop.source import Function, arguments_of, function_of
from maat.agent.loop.values import MODEL, UNKNOWN, WEIGHTS, Key, Objects, Value, joined
from maat.agent.script import is_script

_DEEPEST = 12
_OF_MODEL = {"parameters": WEIGHTS, "named_parameters": WEIGHTS, "state_dict": WEIGHTS}
_OF_MODEL |= dict.fromkeys(("modules", "children", "named_modules", "named_children"), MODEL)
_VIEWS = {"detach", "view", "values", "items", "keys", "flatten", "reshape", "numpy", "get"}
_VIEWS |= {"zip", "list", "tuple", "enumerate", "reversed", "dict", "filter", "iter", "next"}
_COPIES = {"clone", "to", "cpu", "cuda", "float", "double", "half", "bfloat16", "copy", "deepcopy"}
_COPIES |= {"asarray", "array", "from_numpy", "tensor", "as_tensor", "stack", "cat", "tolist"}
_COPIES |= {"concatenate", "mul", "add", "sub", "div", "lerp", "square", "sqrt", "astype", "ravel"}
_COPIES |= {"parameters_to_vector", "contiguous"}
_SHAPES = {
    "size",
    "len",
    "numel",
    "dim",
    "type",
    "isinstance",
    "hasattr",
    "id",
    "is_floating_point",
}
_GROWING = {"append", "extend", "appendleft", "add", "insert", "update", "pop", "popleft", "clear"}
_GROWING |= {"remove", "discard", "setdefault", "rotate", "push"}
_MUTABLE = (list, dict, set)


class Calls(Expressions):
    """Reads calls."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(Memory(objects))
        self._under_way: list[Any] = []

    def call(self, node: ast.Call, scope: Scope) -> Value:
        """Return what a call returns."""
        if self.is_fetch(node):
            return self.given_value
        receiver, name = Value(target=None), getattr(node.func, "id", "")
        if isinstance(node.func, ast.Attribute):
            receiver, name = self.value(node.func.value, scope), node.func.attr
        function = self.value(node.func, scope)
        positional = [self.value(each, scope) for each in node.args]
        named = {each.arg or "": self.value(each.value, scope) for each in node.keywords}
        arguments = [*positional, *named.values()]
        self.effects.calls(name, receiver, arguments, node, scope)
        if isinstance(node.func, ast.Attribute):
            self._change(node.func, receiver, arguments, scope)
        if name == "next" and positional and positional[0].is_outside:
            return Value(carried=ast.unparse(node))
        found = self._result(function, positional, named, scope)
        if found is None:
            found = joined((replace(receiver, local=None), *arguments, function))
        return self._of_weights(found, name, receiver, positional)

    def _change(
        self, function: ast.Attribute, receiver: Value, arguments: Sequence[Value], scope: Scope
    ) -> None:
        """Note what a method puts into its object."""
        name, target = function.attr, receiver.target
        is_in_place = name.endswith("_") and not name.endswith("__")
        is_grown = name in _GROWING and (target is UNKNOWN or _is_container(target))
        is_changed = is_in_place and (target is UNKNOWN or isinstance(target, torch.Tensor))
        if (is_grown or is_changed) and not receiver.stands_for:
            self.add_to(function.value, receiver, joined(arguments), scope, grows=True)

    def _of_weights(
        self, found: Value, name: str, receiver: Value, arguments: Sequence[Value]
    ) -> Value:
        """Add to what a call returns whether it is, or is made of, weights."""
        if name in _SHAPES:
            return replace(found, is_of_batch=False, parts=None, stands_for="")
        if receiver.stands_for == MODEL and name in _OF_MODEL:
            stands_for = _OF_MODEL[name]
            return replace(found, stands_for=stands_for, is_like_weights=stands_for == WEIGHTS)
        of = [receiver, *arguments]
        if name in _VIEWS:
            stands_for = next((each.stands_for for each in of if each.stands_for), "")
            found = replace(found, stands_for=stands_for, is_outside=any(e.is_outside for e in of))
        if name in _VIEWS or name in _COPIES or (name.endswith("_") and receiver.is_outside):
            is_like = any(each.is_like_weights for each in of)
            found = replace(found, is_like_weights=found.is_like_weights or is_like)
        if name.endswith("_"):
            found = replace(found, stands_for=receiver.stands_for, is_outside=receiver.is_outside)
        return found

    def _result(
        self, function: Value, positional: list[Value], named: dict[str, Value], scope: Scope
    ) -> Value | None:
        """Return what a function of the script returns; None for others."""
        if function.local is not None:
            node, defined_in = function.local
            return self._enter(node, self._inner_scope(defined_in), positional, named, scope)
        target = function.target
        if isinstance(target, torch.nn.Module):
            return self._forward(target, positional, named, scope)
        if isinstance(target, partial):
            positional = [*map(self.memory.objects.value, target.args), *positional]
            target = target.func
        if not isinstance(target, FunctionType | MethodType | type) and target is not UNKNOWN:
            own = inspect.getattr_static(type(target), "__call__", None)
            target = MethodType(own, target) if isinstance(own, FunctionType) else target
        if isinstance(target, MethodType):
            positional = [self.value_before_loop(target.__self__, "self"), *positional]
            target = target.__func__
        if isinstance(target, FunctionType):
            return self._follow(inspect.unwrap(target), positional, named, scope)
        return None

    def read_property(self, function: Any, receiver: Value) -> Value:
        """Return what a property of the script's gives."""
        if isinstance(function, FunctionType):
            outer = Scope("", lambda _: UNKNOWN, lambda _: None)
            found = self._follow(function, [receiver], {}, outer)
            if found is not None:
                return found
        return Value()

    def _forward(
        self, module: Any, positional: list[Value], named: dict[str, Value], scope: Scope
    ) -> Value:
        """Return what a module gives: its own function is followed, or those of its parts."""
        forward = inspect.getattr_static(type(module), "forward", None)
        if isinstance(forward, FunctionType) and is_script(forward.__code__.co_filename):
            found = self._follow(
                forward, [self.value_before_loop(module, "self"), *positional], named, scope
            )
            if found is not None:
                return found
        values = [*positional, *named.values()]
        argument = joined(values)
        for each in module.modules():
            own = inspect.getattr_static(type(each), "forward", None)
            values += [
                value
                for key, value in self.memory.now.items()
                if key[0] == "attr" and key[1] == id(each)
            ]
            values += [
                Value(carried=label)
                for key, label in self.memory.carried.items()
                if key[0] == "attr" and key[1] == id(each) and key not in self.memory.now
            ]
            if each is module or not isinstance(own, FunctionType):
                continue
            if is_script(own.__code__.co_filename):
                count = own.__code__.co_argcount - 1
                given = [self.value_before_loop(each, "self"), *[argument] * count]
                values.append(self._follow(own, given, {}, scope) or Value())
        return replace(joined(values), is_of_batch=True)

    def _follow(
        self, function: FunctionType, positional: list[Value], named: dict[str, Value], scope: Scope
    ) -> Value | None:
        code = function.__code__
        if not is_script(code.co_filename):
            return None
        node = function_of(code)
        if not isinstance(node, Function):
            return None
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
        outer = function.__globals__
        own = {
            name: self.memory.objects.value(default)
            for name, default in _defaults(function).items()
        }
        written = _written_outside(node)

        def find(name: str) -> Any:
            if name in cells:
                try:
                    return cells[name].cell_contents
                except ValueError:  # it has no value yet
                    return UNKNOWN
            return found_outside(outer, name)

        def key(name: str) -> Key | None:
            if name in cells:
                return self._key_of_cell(name, cells[name], function)
            if name in code.co_varnames and name not in written:
                return None
            return ("global", id(outer), name) if name in outer else None

        inner = Scope(code.co_filename, find, key, names=own)
        return self._enter(node, inner, positional, named, scope)

    def _key_of_cell(self, name: str, cell: Any, function: FunctionType) -> Key:
        """Return what a name of a function around another is known by."""
        code = None if self._loop is None else self._loop.code
        if code is None or name not in code.co_cellvars:
            return ("cell", id(cell), name)
        is_inside = function.__qualname__.startswith(f"{code.co_qualname}.<locals>")
        return ("name", id(code), name) if is_inside else ("cell", id(cell), name)

    def _inner_scope(self, defined_in: Scope) -> Scope:
        return Scope(defined_in.file, lambda _: UNKNOWN, lambda _: None, parent=defined_in)

    def _enter(
        self,
        node: Function,
        inner: Scope,
        positional: list[Value],
        named: dict[str, Value],
        scope: Scope,
    ) -> Value | None:
        """Read a function's body; return what it returns."""
        if len(self._under_way) >= _DEEPEST or node in self._under_way:
            return None
        inner.names.update(
            {
                name: joined(value) if isinstance(value, list) else value
                for name, value in arguments_of(node, positional, named).items()
            }
        )
        self._under_way.append(node)
        depth, self.depth_of_loops = self.depth_of_loops, 1
        inner.caller = scope
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, inner)
            self.block(node.body, inner)
        finally:
            self._under_way.pop()
            self.depth_of_loops = depth
        if len(inner.returned) == 1:
            return inner.returned[0]
        return joined(inner.returned) if inner.returned else Value(target=None)

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Read statements one after the other."""

    def _is_own(self, node: ast.Call, scope: Scope) -> bool:
        target = self.value(node.func, scope).target
        return isinstance(target, FunctionType) and is_script(target.__code__.co_filename)


def _is_container(target: Any) -> bool:
    return isinstance(target, _MUTABLE) or type(target).__module__ == "collections"


def _defaults(function: FunctionType) -> dict[str, Any]:
    found = inspect.signature(function, follow_wrapped=False).parameters
    return {
        name: each.default for name, each in found.items() if each.default is not inspect._empty
    }


def _written_outside(node: Function) -> set[str]:
    """Return the names that a function says are not its own."""
    return {
        name
        for each in ast.walk(node)
        if isinstance(each, ast.Global | ast.Nonlocal)
        for name in each.names
    }
