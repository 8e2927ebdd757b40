"""Reads `module:Class` as an entry of the registry: imports it and checks what rounds need of it.

Importing runs the code: callers do it for the operator, never for a request.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maat.scheduling.errors import InputError
from maat.scheduling.function_knobs import REQUIRED, arguments_of
from maat.scheduling.own.code import code_digest
from maat.scheduling.own.policy import OwnPolicy
from maat.scheduling.own.running import present_runner
from maat.scheduling.parameters import checked_knobs, parameters_of, unshown_knobs
from maat.scheduling.placement import PLACERS
from maat.scheduling.protocols import GpuSharing, Policy
from maat.scheduling.registry import Entry, Needs
from maat.vocabulary import LEAST_ROUND_SECONDS, MOST_ROUND_SECONDS

_FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class OwnEntry(Entry[Policy]):
    """An own policy. `distribution`: the installed one that it comes from, None: a module."""

    distribution: str | None = None

    @property
    def target(self) -> Any:
        """The class or function. It was imported when the entry was read."""
        module, _, name = self.where.partition(":")
        return getattr(importlib.import_module(module), name)

    def code_digest(self) -> str:
        return code_digest(self.where.partition(":")[0])

    def build(self, parameters: Mapping[str, object]) -> Policy:
        target = self.target
        knobs = checked_knobs(target, parameters, owner=self.name)
        if isinstance(target, type):
            made, arguments = target(**knobs), {}
        else:
            made, arguments = target, {p.name: p.default for p in self.parameters} | knobs
        return OwnPolicy(self.name, made, arguments, where=self.where, runner=present_runner())

    @property
    def parameters(self) -> tuple[Any, ...]:
        return parameters_of(self.target)


def read_entry(where: str, *, name: str | None = None, distribution: str | None = None) -> OwnEntry:
    """Return the entry of `module:Class` or `module:function`.

    `name`: by which it is known; None: `where` itself. Raises InputError, which names the field,
    its value and a remedy, for what cannot be imported or is no policy.
    """
    target = _imported(where)
    _check_callable(target, where)
    _check_knobs(target)
    _check_made(target, where)
    placer = getattr(target, "placer", None)
    if placer is not None and placer not in PLACERS.names:
        raise InputError(
            "is no placer that Maat has",
            field="placer",
            value=placer,
            remedy=f"Use one of: {', '.join(PLACERS.names)}.",
        )
    _check_rounds(getattr(target, "default_round_seconds", None))
    shares = getattr(target, "gpu_sharing", None) is GpuSharing.CHOSEN
    words = (inspect.getdoc(target) or "").strip().partition("\n\n")[0]
    return OwnEntry(
        where if name is None else name,
        str(getattr(target, "title", None) or _title(target, name)),
        " ".join(words.split()) or f"Of {where}; it has no docstring.",
        where,
        placer,
        Needs.SHARED_GPUS if shares else None,
        objective=getattr(target, "objective", None),
        distribution=distribution,
    )


def _title(target: Any, name: str | None) -> str:
    return str(target.__name__) if name is None else name.replace("-", " ").capitalize()


def _imported(where: str) -> Any:
    if not _FORM.fullmatch(where):
        raise _refused(
            "is not of the form module:Class", where, "Write for example fair.queue:LongestFirst."
        )
    module, _, name = where.partition(":")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{module}.".startswith(f"{missing.name}."):
            remedy = "Install what has it, or start from the folder that it is in."
            raise _refused(f"names no module: there is no {missing.name}", where, remedy) from None
        raise _refused(
            f"cannot be imported: it needs {missing.name}, which is not installed",
            where,
            f"Install {missing.name} in the environment of Maat.",
        ) from None
    except (Exception, SystemExit) as error:
        raise _refused(
            f"cannot be imported: {type(error).__name__}: {error}", where, "Mend the module."
        ) from error
    if not hasattr(loaded, name):
        raise _refused(f"names nothing: the module {module} has no {name}", where, _there(loaded))
    return getattr(loaded, name)


def _there(module: Any) -> str:
    """Say what a module has that could be a policy."""
    own = [
        name
        for name, known in vars(module).items()
        if getattr(known, "__module__", None) == module.__name__
        and (hasattr(known, "allocate") or inspect.isfunction(known))
        and not name.startswith("_")
    ]
    return f"It has: {', '.join(own)}." if own else "It has no class and no function of its own."


def _check_callable(target: Any, where: str) -> None:
    remedy = "Name a class with allocate(round_input), or a function of the round's input."
    if isinstance(target, type):
        allocate = getattr(target, "allocate", None)
        if not callable(allocate):
            raise _refused("is a class without a method allocate", where, remedy)
        taken = list(inspect.signature(allocate).parameters)[1:]
    elif inspect.isfunction(target):
        taken = list(inspect.signature(target).parameters)[:1]
    else:
        raise _refused(f"is a {type(target).__name__}, neither class nor function", where, remedy)
    if len(taken) != 1:
        raise _refused("does not take the round's input as its one argument", where, remedy)


def _check_knobs(target: Callable[..., object]) -> None:
    """Raise InputError for a knob without a default, or one that no form could show."""
    for name in _without_default(target):
        raise InputError(
            "has no default",
            field=name,
            remedy=f"Give it one, such as {name}: float = knob(1.0, 'what it is').",
        )
    try:
        unshown = unshown_knobs(target)
    except (NameError, AttributeError, SyntaxError) as error:
        raise InputError(
            f"has types that cannot be read: {error}",
            field="policy",
            value=getattr(target, "__name__", None),
            remedy="Import at the top of the module what its annotations name.",
        ) from None
    for name, hint in unshown.items():
        raise InputError(
            "is of a type that no form can show",
            field=name,
            value=getattr(hint, "__name__", str(hint)),
            remedy="Make it bool, int, float, str or a StrEnum.",
        )
    checked_knobs(target, {p.name: p.default for p in parameters_of(target)}, owner="itself")


def _without_default(target: Callable[..., object]) -> list[str]:
    if not isinstance(target, type):
        return [argument.name for argument in arguments_of(target) if argument.default is REQUIRED]
    if dataclasses.is_dataclass(target):
        missing = dataclasses.MISSING
        return [
            field.name
            for field in dataclasses.fields(target)
            if field.init and field.default is missing and field.default_factory is missing
        ]
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arguments = inspect.signature(target).parameters.values()
    return [a.name for a in arguments if a.default is REQUIRED and a.kind in named]


def _check_made(target: Any, where: str) -> None:
    """Raise InputError if a class cannot be made with its defaults, as lists of policies do."""
    if not isinstance(target, type):
        return
    try:
        target()
    except Exception as error:
        raise _refused(
            f"cannot be made with its defaults: {type(error).__name__}: {error}",
            where,
            "Let it be made without arguments.",
        ) from error


def _check_rounds(seconds: Any) -> None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is None or isinstance(seconds, property):
        return
    if not is_number or not LEAST_ROUND_SECONDS <= seconds <= MOST_ROUND_SECONDS:
        raise InputError(
            "is no interval of rounds",
            field="default_round_seconds",
            value=seconds,
            remedy=f"Give seconds from {LEAST_ROUND_SECONDS:g} to {MOST_ROUND_SECONDS:g}.",
        )


def _refused(problem: str, where: str, remedy: str) -> InputError:
    return InputError(problem, field="policy", value=where, remedy=remedy)
