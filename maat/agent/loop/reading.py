"""Reads the script's loop: does what it carries from batch to batch change the training?

In a step of several passes the loop runs once for each, and a number that it counts by itself is
not a number of steps. So the body of the loop is read once, from top to bottom, and each value is
followed: from names that a batch leaves to the next one, to losses, gradients, weights and calls
of the optimiser. Functions of the script are followed, those of libraries are not. What is only
printed, logged or saved may depend on anything.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from maat.agent.loop.calls import Calls
from maat.agent.loop.scope import Branches, Scope
from maat.agent.loop.source import LoopAt
from maat.agent.loop.values import UNKNOWN, Value, joined


class Reading(Calls):
    """Reads statements."""

    def read_loop(self, loop: LoopAt, given: Value) -> Value:
        """Read the body of a loop until nothing new is found; return what it yields, as one.

        `given` is what it gets of the loader. Raises Reached.
        """
        rounds, has_learned = 0, True
        while has_learned or rounds < 2:
            self.memory.begin()
            scope = self.loop_scope(loop)
            self.effects.is_silent = True
            self._read_body(loop, scope, given)
            has_learned, rounds = self.memory.learn(), rounds + 1
        self.memory.begin()
        scope = self.loop_scope(loop)
        self.effects.is_silent = False
        self._read_body(loop, scope, given)
        return joined(scope.returned) if len(scope.returned) != 1 else scope.returned[0]

    def _read_body(self, loop: LoopAt, scope: Scope, given: Value) -> None:
        self.begin_loop(loop, given)
        node = loop.node
        if isinstance(node, ast.While):
            self.value(node.test, scope)
        elif loop.fetch is node:
            self.assign(node.target, self.batch_value(node.iter, scope), scope)
        else:  # it counts batches
            self.assign(node.target, Value(carried=ast.unparse(node.target)), scope)
        self.block(node.body, scope)

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        for each in statements:
            self.statement(each, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is not None:
            read(node, scope)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope)

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, value, scope)

    def _annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)

    def _augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        before, added = self.value(_loaded(node.target), scope), self.value(node.value, scope)
        self.effects.changes_in_place(before, added, node, scope)
        made = replace(
            joined((before, added)),
            stands_for=before.stands_for,
            is_like_weights=before.is_like_weights or added.is_like_weights,
            is_outside=before.is_outside,
        )
        self.assign(node.target, made, scope)

    def _delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.assign(target, Value(target=None), scope)

    def _expr(self, node: ast.Expr, scope: Scope) -> None:
        self.value(node.value, scope)

    def _return(self, node: ast.Return, scope: Scope) -> None:
        value = Value(target=None) if node.value is None else self.value(node.value, scope)
        scope.returned.append(self.effects.decided(value, scope))
        self._leave(scope, "return")

    def _continue(self, node: ast.Continue, scope: Scope) -> None:
        self._leave(scope, "loop")

    def _break(self, node: ast.Break, scope: Scope) -> None:
        if self.depth_of_loops > 0:  # the end of the loop over batches is watched as it runs
            self._leave(scope, "loop")

    def _leave(self, scope: Scope, what: str) -> None:
        decision = self.effects.decision(scope)
        if decision is not None and scope.left is None:
            scope.left = (decision.carried, decision.line, what)

    def _if(self, node: ast.If, scope: Scope) -> None:
        known = self.constant(node.test, scope)
        if known is not UNKNOWN:
            self.block(node.body if known else node.orelse, scope)
            return
        test = self.value(node.test, scope)
        branches = Branches(self.memory, scope)
        for body in (node.body, node.orelse):
            with branches.way(leaves=_leaves(body)), self.effects.decides(test, node.test, scope):
                self.block(body, scope)
        branches.join()

    def _for(self, node: ast.For, scope: Scope) -> None:
        if self.is_fetch(node):
            given = self.batch_value(node.iter, scope)
        else:
            given = self.elements(node.iter, scope)
        self._repeat(node, given, scope)

    _asyncfor = _for

    def _while(self, node: ast.While, scope: Scope) -> None:
        self._repeat(node, self.value(node.test, scope), scope)

    def _repeat(self, node: ast.For | ast.While, value: Value, scope: Scope) -> None:
        """Read an inner loop twice: what its first round leaves, the second may use."""
        before = scope.left
        self.depth_of_loops += 1
        for _ in range(2):
            branches = Branches(self.memory, scope)
            place = node.test if isinstance(node, ast.While) else node.iter
            decides = value if isinstance(node, ast.While) or _is_range(place) else Value()
            with branches.way(), self.effects.decides(decides, place, scope):
                if isinstance(node, ast.For):
                    self.assign(node.target, value, scope)
                self.block(node.body, scope)
            with branches.way():
                pass
            branches.join()
        self.depth_of_loops -= 1
        if scope.left is not None and scope.left[2] == "loop":
            scope.left = before
        self.block(node.orelse, scope)

    def _with(self, node: ast.With, scope: Scope) -> None:
        decides = Value()
        for item in node.items:
            value = self.value(item.context_expr, scope)
            decides = joined((decides, value)) if _switches(item.context_expr) else decides
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, scope)
        with self.effects.decides(decides, node.items[0].context_expr, scope):
            self.block(node.body, scope)

    _asyncwith = _with

    def _try(self, node: ast.Try, scope: Scope) -> None:
        branches = Branches(self.memory, scope)
        with branches.way():
            self.block(node.body, scope)
            self.block(node.orelse, scope)
        for handler in node.handlers:
            with branches.way(leaves=_leaves(handler.body)):
                self.block(handler.body, scope)
        branches.join()
        self.block(node.finalbody, scope)

    def _match(self, node: ast.Match, scope: Scope) -> None:
        subject = self.value(node.subject, scope)
        branches = Branches(self.memory, scope)
        with branches.way():
            pass
        for case in node.cases:
            with branches.way(), self.effects.decides(subject, node.subject, scope):
                self.block(case.body, scope)
        branches.join()

    def _functiondef(self, node: ast.FunctionDef, scope: Scope) -> None:
        scope.names[node.name] = Value(local=(node, scope))

    def _classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        scope.names[node.name] = Value()


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"


_SWITCHES = {"autocast", "no_sync", "set_grad_enabled", "no_grad", "nullcontext"}


def _switches(node: ast.expr) -> bool:
    """Return whether a context changes what is computed in it: not one that measures or names."""
    if not isinstance(node, ast.Call):
        return True
    return getattr(node.func, "attr", getattr(node.func, "id", "")) in _SWITCHES


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Return whether what follows is not come to behind these statements."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Break | ast.Continue)


def _loaded(target: ast.expr) -> ast.expr:
    """Return an assignment's target as what is read."""
    return ast.parse(ast.unparse(target), mode="eval").body
