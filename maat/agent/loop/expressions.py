"""Reads the expressions of the script's loop: what each value depends on."""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from maat.agent.loop.effects import Effects
from maat.agent.loop.scope import Memory, Scope
from maat.agent.loop.source import LoopAt
from maat.agent.loop.values import (
    GRADIENTS,
    MODEL,
    OPTIMISER,
    SETTINGS,
    UNKNOWN,
    WEIGHTS,
    Key,
    Value,
    attribute,
    either,
    joined,
)

_SHAPES = {"shape", "device", "dtype", "ndim", "is_cuda", "requires_grad", "training"}
_PARTS = {"grad": GRADIENTS, "param_groups": SETTINGS, "params": WEIGHTS}
_NO_WEIGHTS = _SHAPES | {"grad", "param_groups"}
_COUNTS = {"range", "count"}
_PAIRS = {"named_parameters", "items", "named_modules"}
COUNTED = "enumerate()"


class Expressions(ABC):
    """Reads expressions; calls are read by what extends this.

    Attributes:
        given_value: What the loop gets of the loader.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory, self.effects = memory, Effects()
        self.depth_of_loops = 0
        self.given_value = Value(is_of_batch=True)
        self._fetch: ast.AST | None = None
        self._loop: LoopAt | None = None
        self._fetched = ""

    def begin_loop(self, loop: LoopAt, given: Value) -> None:
        self.given_value, self._fetch, self._loop = given, loop.fetch, loop
        self._fetched = "" if loop.fetch is loop.node else ast.dump(loop.fetch)

    def is_fetch(self, node: ast.AST) -> bool:
        """Return whether this is what asks for a batch."""
        return node is self._fetch or (bool(self._fetched) and ast.dump(node) == self._fetched)

    def loop_scope(self, loop: LoopAt) -> Scope:
        """Return the function that the loop is in."""
        code, is_module = loop.code, loop.code.co_name == "<module>"
        own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}

        def find(name: str) -> Any:
            return loop.local[name] if name in loop.local else found_outside(loop.outer, name)

        def key(name: str) -> Key | None:
            if is_module or name not in own:
                return ("global", id(loop.outer), name)
            return ("name", id(code), name)

        return Scope(loop.file, find, key)

    @abstractmethod
    def call(self, node: ast.Call, scope: Scope) -> Value:
        """Return what is known of a call's result, after going into the script's own function."""

    @abstractmethod
    def read_property(self, function: Any, receiver: Value) -> Value:
        """Return what is known of a property, which is read as a call is."""

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """Return what is known of an expression."""
        if isinstance(node, ast.Constant):
            return Value(target=node.value)
        if isinstance(node, ast.Call):
            return self.call(node, scope)
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is not None:
            found: Value = read(node, scope)
            return found
        return joined(
            self.value(each, scope)
            for each in ast.iter_child_nodes(node)
            if isinstance(each, ast.expr)
        )

    def constant(self, node: ast.expr, scope: Scope) -> Any:
        """Return what a condition is at every batch; UNKNOWN if it may change."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            known = self.constant(node.operand, scope)
            return UNKNOWN if known is UNKNOWN else not known
        if isinstance(node, ast.BoolOp):
            return self._constant_of_many(node, scope)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._constant_of_two(node, scope)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return 0 if self.constant(node.right, scope) == 1 else UNKNOWN
        if isinstance(node, ast.Name | ast.Attribute | ast.Constant):
            value = self.value(node, scope)
            return value.target if value.is_constant else UNKNOWN
        return UNKNOWN

    def _constant_of_many(self, node: ast.BoolOp, scope: Scope) -> Any:
        decisive = isinstance(node.op, ast.Or)
        known = [self.constant(each, scope) for each in node.values]
        for each in known:
            if each is not UNKNOWN and bool(each) is decisive:
                return decisive
        return UNKNOWN if any(each is UNKNOWN for each in known) else not decisive

    def _constant_of_two(self, node: ast.Compare, scope: Scope) -> Any:
        left, right = node.left, node.comparators[0]
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            value = self.value(left, scope)
            is_none = isinstance(right, ast.Constant) and right.value is None
            if not is_none or value.carried is not None or value.target is UNKNOWN:
                return UNKNOWN
            return (value.target is None) is isinstance(node.ops[0], ast.Is)
        one, other = self.constant(left, scope), self.constant(right, scope)
        if one is UNKNOWN or other is UNKNOWN:
            return UNKNOWN
        if isinstance(node.ops[0], ast.Eq):
            return one == other
        return one != other if isinstance(node.ops[0], ast.NotEq) else UNKNOWN

    def value_before_loop(self, target: Any, label: str) -> Value:
        """Return what is known of an object that was there before the loop."""
        value = self.memory.objects.value(target)
        if isinstance(target, list | dict | set) or hasattr(target, "__setitem__"):
            content = self.memory.read(content_of(target), label, UNKNOWN)
            value = replace(value, carried=content.carried, keys=content.keys)
        return value

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        place: Scope | None = scope
        while place is not None:
            if node.id in place.names:
                return place.names[node.id]
            key, before = place.key(node.id), place.find(node.id)
            if key is not None:
                value = self.memory.read(key, node.id, before)
                if value.target is UNKNOWN:
                    return value
                known = self.value_before_loop(value.target, node.id)
                keys = value.keys | known.keys
                return replace(value, carried=value.carried or known.carried, keys=keys)
            if before is not UNKNOWN:
                return self.value_before_loop(before, node.id)
            place = place.parent
        return Value()

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        base, name = self.value(node.value, scope), node.attr
        found = attribute(base.target, name)
        if isinstance(found, property):
            value = self.read_property(found.fget, base)
            part = _part_of(base.stands_for, name)
            return value if value.stands_for else replace(value, stands_for=part)
        if base.target is not UNKNOWN:
            self.memory.keep_alive(base.target)
            value = self.memory.read(("attr", id(base.target), name), ast.unparse(node), found)
            if value.target is not UNKNOWN:
                known = self.value_before_loop(value.target, ast.unparse(node))
                value = replace(
                    known,
                    carried=value.carried or known.carried,
                    keys=value.keys | known.keys,
                    local=value.local,
                )
        else:
            value = replace(base, parts=None, local=None, target=UNKNOWN)
        stands_for = value.stands_for or _part_of(base.stands_for, name)
        return replace(
            value,
            carried=value.carried or base.carried,
            is_of_batch=(value.is_of_batch or base.is_of_batch) and name not in _SHAPES,
            stands_for=stands_for if name not in _SHAPES else "",
            is_like_weights=(value.is_like_weights or base.is_like_weights)
            and name not in _NO_WEIGHTS,
            is_outside=value.is_outside or base.is_outside,
        )

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        base, index = self.value(node.value, scope), self.value(node.slice, scope)
        at = index.target
        if (
            base.parts is not None
            and isinstance(at, int)
            and -len(base.parts) <= at < len(base.parts)
        ):
            return base.parts[at]
        target = UNKNOWN
        if isinstance(base.target, dict | list | tuple) and isinstance(at, int | str):
            try:
                target = base.target[at]  # type: ignore[index]
            except (LookupError, TypeError):
                target = UNKNOWN
        value = self.value_before_loop(target, "") if target is not UNKNOWN else Value()
        both = joined((base, index, value))
        stands_for = base.stands_for
        if stands_for == SETTINGS and at == "params":
            stands_for = WEIGHTS
        is_changed = base.carried is not None
        return replace(
            both,
            stands_for=value.stands_for or stands_for,
            is_like_weights=base.is_like_weights or stands_for == WEIGHTS,
            is_outside=base.is_outside,
            target=UNKNOWN if is_changed else target,
        )

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        if isinstance(node.op, ast.Mod) and self.constant(node.right, scope) == 1:
            return Value(target=0)
        both = [self.value(node.left, scope), self.value(node.right, scope)]
        return replace(joined(both), is_like_weights=any(each.is_like_weights for each in both))

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Value:
        known = self.constant(node, scope)
        if known is not UNKNOWN:
            return Value(target=known)
        return joined(self.value(each, scope) for each in node.values)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        known = self.constant(node.test, scope)
        if known is not UNKNOWN:
            return self.value(node.body if known else node.orelse, scope)
        test = self.value(node.test, scope)
        found = either(self.value(node.body, scope), self.value(node.orelse, scope))
        return replace(found, carried=found.carried or test.carried, keys=found.keys | test.keys)

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Value:
        parts = tuple(self.value(each, scope) for each in node.elts)
        return replace(
            joined(parts),
            parts=parts,
            stands_for=next((each.stands_for for each in parts if each.stands_for), ""),
            is_like_weights=any(each.is_like_weights for each in parts),
        )

    _list = _tuple

    def _starred(self, node: ast.Starred, scope: Scope) -> Value:
        return self.value(node.value, scope).element()

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Value(local=(node, scope))

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Value:
        value = self.value(node.value, scope)
        self.assign(node.target, value, scope)
        return value

    def _yield(self, node: ast.Yield, scope: Scope) -> Value:
        value = Value(target=None) if node.value is None else self.value(node.value, scope)
        scope.returned.append(self.effects.decided(value, scope))
        return Value()

    def _listcomp(self, node: Any, scope: Scope) -> Value:
        inner = Scope(scope.file, lambda _: UNKNOWN, lambda _: None, parent=scope)
        decides = Value()
        for each in node.generators:
            self.assign(each.target, self.elements(each.iter, inner), inner)
            decides = joined((decides, *(self.value(test, inner) for test in each.ifs)))
        bodies = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        with self.effects.decides(decides, bodies[-1], scope):
            values = [self.value(body, inner) for body in bodies]
        return replace(
            joined((*values, decides)),
            stands_for=values[-1].stands_for,
            is_like_weights=values[-1].is_like_weights,
        )

    _setcomp = _dictcomp = _generatorexp = _listcomp

    def elements(self, node: ast.expr, scope: Scope) -> Value:
        """Return what is known of each element of what an inner loop goes through."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name, arguments = node.func.id, node.args
            if name == "enumerate" and arguments:
                return _tuple_of([Value(), self.elements(arguments[0], scope)])
            if name == "zip":
                return _tuple_of([self.elements(each, scope) for each in arguments])
        element = self.value(node, scope).element()
        name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
        if name not in _PAIRS:
            return element
        return _tuple_of([Value(element.carried, element.keys, element.is_of_batch), element])

    def batch_value(self, node: ast.expr, scope: Scope) -> Value:
        """Return what the loop over batches gets each time."""
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "enumerate" and node.args:
                return _tuple_of([Value(carried=COUNTED), self.batch_value(node.args[0], scope)])
            if name == "zip":
                return _tuple_of([self._given_beside(each, node.args, scope) for each in node.args])
            if node.args and not self._is_own(node, scope):
                return self.batch_value(node.args[0], scope)
            return self.given_value
        target = self.value(node, scope).target
        inner = getattr(target, "iterable", target) if target is not UNKNOWN else target
        if isinstance(inner, enumerate):
            return _tuple_of([Value(carried=COUNTED), self.given_value])
        return self.given_value

    def _given_beside(self, node: ast.expr, others: Sequence[ast.expr], scope: Scope) -> Value:
        name = ""
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        loaders = [each for each in others if self._gives_batches(each, scope)]
        if name in _COUNTS or (loaders and node not in loaders):
            return Value(carried=ast.unparse(node))
        return self.batch_value(node, scope)

    def _gives_batches(self, node: ast.expr, scope: Scope) -> bool:
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]
        kinds = [type(self.value(each, scope).target) for each in names]
        return any(each.__module__ == "maat.agent.job" for each in kinds)

    def _is_own(self, node: ast.Call, scope: Scope) -> bool:
        return False

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Set what an assignment, or a loop, gives a value."""
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.parts
            if parts is None or len(parts) != len(target.elts):
                parts = (value.element(),) * len(target.elts)
            for each, part in zip(target.elts, parts, strict=True):
                self.assign(each, part, scope)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value.element(), scope)
        elif isinstance(target, ast.Name):
            self._set_name(target, value, scope)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(target, value, scope)
        elif isinstance(target, ast.Subscript):
            base = self.value(target.value, scope)
            index = self.value(target.slice, scope)
            self.effects.sets(base, joined_with(value, index), target, scope)
            self.add_to(target.value, base, value, scope)

    def _set_name(self, target: ast.Name, value: Value, scope: Scope) -> None:
        if value.carried == COUNTED:
            value = replace(value, carried=target.id)
        key = scope.key(target.id)
        if key is None:
            scope.names[target.id] = self.effects.decided(value, scope)
            return
        self.effects.keeps(value, target.id, target, scope)
        before = scope.find(target.id)
        self.memory.store(key, target.id, self.effects.decided(value, scope), before)

    def _set_attribute(self, target: ast.Attribute, value: Value, scope: Scope) -> None:
        base = self.value(target.value, scope)
        self.effects.sets(base, value, target, scope)
        if base.target is UNKNOWN:
            self.add_to(target.value, base, value, scope)
            return
        key = ("attr", id(base.target), target.attr)
        before = attribute(base.target, target.attr)
        self.memory.store(key, ast.unparse(target), self.effects.decided(value, scope), before)

    def add_to(
        self, node: ast.expr, base: Value, value: Value, scope: Scope, *, grows: bool = False
    ) -> None:
        """Note that a value is put into an object, which `grows` by it."""
        value = self.effects.decided(value, scope)
        key = scope.key(node.id) if isinstance(node, ast.Name) else None
        if base.target is not UNKNOWN:
            place = content_of(base.target)
            kept = joined((value, Value(keys=frozenset([place] if grows else []))))
            kept = replace(kept, target=value.target)
            self.memory.put(place, ast.unparse(node), kept)
        elif key is not None and key in self.memory.now:
            self.memory.now[key] = _with(self.memory.now[key], value)
        elif isinstance(node, ast.Name) and node.id in scope.names:
            scope.names[node.id] = _with(scope.names[node.id], value)


def _with(old: Value, value: Value) -> Value:
    return replace(
        joined((old, value)),
        stands_for=old.stands_for,
        is_like_weights=old.is_like_weights or value.is_like_weights,
        is_outside=old.is_outside,
    )


def content_of(target: Any) -> Key:
    return ("content", id(target), "")


def found_outside(outer: Mapping[str, Any], name: str) -> Any:
    """Return what a global name is, or UNKNOWN."""
    return outer[name] if name in outer else getattr(builtins, name, UNKNOWN)


def joined_with(value: Value, index: Value) -> Value:
    return replace(value, carried=value.carried or index.carried)


def _tuple_of(parts: Sequence[Value]) -> Value:
    return replace(
        joined(parts),
        parts=tuple(parts),
        stands_for=next((each.stands_for for each in parts if each.stands_for), ""),
        is_like_weights=any(each.is_like_weights for each in parts),
    )


def _part_of(stands_for: str, name: str) -> str:
    if name in _PARTS and stands_for:
        return _PARTS[name]
    if stands_for == MODEL:
        return ""
    return stands_for if stands_for in (OPTIMISER, WEIGHTS, GRADIENTS) else ""
