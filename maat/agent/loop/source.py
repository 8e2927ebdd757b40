"""Finds the source of the loop in which the script asks for batches."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from maat.agent.script import is_script

Loop = ast.For | ast.AsyncFor | ast.While
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class LoopAt:
    """A loop of the script that is under way.

    Attributes:
        fetch: What in it asks for the next batch: the loop itself, or a call in its body.
        is_generator: It gives the batches on, to another loop.
    """

    file: str
    code: CodeType
    node: Loop
    fetch: ast.AST
    local: Mapping[str, Any]
    outer: Mapping[str, Any]
    is_generator: bool


def loops_at_work() -> list[LoopAt] | None:
    """Return the loop that asks for a batch, after those that give it on; None without source."""
    frame: FrameType | None = sys._getframe(1)
    found: list[LoopAt] = []
    while frame is not None:
        if is_script(frame.f_code.co_filename):
            node = function_of(frame.f_code)
            if node is None:
                return None
            loop = _loop_in(node, frame)
            if loop is not None:
                found.append(loop)
                if not loop.is_generator:
                    return found
        frame = frame.f_back
    return None


def function_of(code: CodeType) -> ast.AST | None:
    """Return the syntax of a function, or of a module; None if there is no source."""
    tree = _tree("".join(linecache.getlines(code.co_filename)))
    if tree is None or code.co_name == "<module>":
        return tree
    named = _functions(tree).get((code.co_name, code.co_firstlineno), [])
    if len(named) == 1:
        return named[0]
    return ast.Pass() if code.co_name.startswith("<") and code.co_name != "<lambda>" else None


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if text.strip() else None
    except SyntaxError:  # not what this file was when it was started
        return None


@lru_cache(maxsize=64)
def _functions(tree: ast.Module) -> Mapping[tuple[str, int], list[ast.AST]]:
    """Return the functions and classes of a file by name and first line."""
    by_place = defaultdict[tuple[str, int], list[ast.AST]](list)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            by_place[getattr(node, "name", "<lambda>"), _first_line(node)].append(node)
    return by_place


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", [])
    return int(min([node.lineno, *(each.lineno for each in decorators)]))  # type: ignore[attr-defined]


def _loop_in(function: ast.AST, frame: FrameType) -> LoopAt | None:
    """Return the innermost loop that a frame is in."""
    code = frame.f_code
    line, end_line, column, end_column = list(code.co_positions())[frame.f_lasti // 2]
    if line is None or column is None:
        line, end_line, column, end_column = frame.f_lineno, frame.f_lineno, 0, 10**6
    start, end = (line, column), (end_line or line, end_column or 10**6)

    def covers(node: Any) -> bool:
        first = (node.lineno, node.col_offset)
        return (first <= start and end <= (node.end_lineno, node.end_col_offset)) or (
            column == 0 and node.lineno <= line <= node.end_lineno
        )

    found: LoopAt | None = None
    for node in _own_nodes(function):
        if not isinstance(node, Loop) or not covers(node) or _is_of_epochs(node):
            continue
        is_header = isinstance(node, ast.For) and covers(node.iter)
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and covers(each)]
        found = LoopAt(
            file=code.co_filename,
            code=code,
            node=node,
            fetch=node if is_header or not calls else calls[-1],
            local=frame.f_locals,
            outer=frame.f_globals,
            is_generator=bool(code.co_flags & inspect.CO_GENERATOR),
        )
    return found


def _is_of_epochs(node: Loop) -> bool:
    call = getattr(node, "iter", None)
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "epochs"


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function from outside to inside, without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, _FUNCTIONS):
            yield node
            yield from _own_nodes(node)


def arguments_of(node: Function, positional: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return what the parameters of a function are, for those that a call gives."""
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    given = dict(zip(names, positional, strict=False))
    if node.args.vararg is not None:
        given[node.args.vararg.arg] = positional[len(names) :]
    known = {*names, *(each.arg for each in node.args.kwonlyargs)}
    given.update({name: value for name, value in named.items() if name in known})
    return given
