"""The knobs of a function that is a policy: what it takes besides the round's input.

def shortest(round_input, *, gpus: int = 2):
    \"\"\"Shortest job first.

    Args:
        gpus: GPUs of each job.
    \"\"\"
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

REQUIRED = inspect.Parameter.empty
"""The default of an argument that has none."""


@dataclass(frozen=True)
class Argument:
    """An argument with its default (REQUIRED: none), its type, and what the docstring says."""

    name: str
    default: Any
    hint: Any
    help: str


def arguments_of(function: Callable[..., object]) -> tuple[Argument, ...]:
    """Return the arguments after the first that can be given by name, in order.

    One without a type is of the type of its default.
    """
    _, *rest = inspect.signature(function).parameters.values()
    words = _documented(inspect.getdoc(function) or "")
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(
        Argument(p.name, p.default, _hint(p, function), words.get(p.name, ""))
        for p in rest
        if p.kind in named
    )


def _hint(parameter: inspect.Parameter, function: Callable[..., object]) -> Any:
    hint = parameter.annotation
    if isinstance(hint, str):
        hint = inspect.get_annotations(function, eval_str=True)[parameter.name]
    return type(parameter.default) if hint is REQUIRED else hint


def _documented(text: str) -> Mapping[str, str]:
    """Read `Args:` of a docstring: a name, a colon and a sentence, on lines that are indented."""
    words: dict[str, str] = {}
    _, _, section = text.partition("\nArgs:\n")
    name, depth = "", None
    for line in section.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or indent == 0:
            break
        depth = indent if depth is None else depth
        if indent == depth:
            name, _, sentence = line.strip().partition(":")
            words[name] = sentence.strip()
        elif name:
            words[name] = f"{words[name]} {line.strip()}"
    return words
