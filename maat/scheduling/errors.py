"""The library's errors: one tree, each named for what happened and worded for the person who can act.

Not responsible for how an error is shown: the CLI turns them into exit code 2, the API into problem+json.
"""

from __future__ import annotations

from typing import Any


class MaatError(Exception):
    """Anything that Maat refuses or could not do."""


class InputError(MaatError):
    """Something that a person or program handed in cannot be used. Names field, value and remedy, and where it stood."""

    def __init__(
        self,
        problem: str,
        *,
        field: str,
        value: object = None,
        remedy: str,
        source: str | None = None,
        row: int | None = None,
    ) -> None:
        self.problem = problem
        self.field = field
        self.value = value
        self.remedy = remedy
        self.source = source
        self.row = row
        super().__init__(str(self))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles by its fields: it may be raised in another process than the one that shows it."""
        return _raised_elsewhere, (type(self), vars(self))

    def __str__(self) -> str:
        place = "" if self.source is None else self.source
        if self.row is not None:
            place = f"{place}, row {self.row}" if place else f"row {self.row}"
        shown = "" if self.value is None else f" (got {_shown(self.value)})"
        return f"{place}{': ' if place else ''}{self.field}: {self.problem}{shown}. {self.remedy}"


class TraceError(InputError):
    """A workload trace cannot be read."""


class ProfileError(InputError):
    """A measured profile cannot be read."""


class VariabilityError(InputError):
    """Measurements of single GPUs cannot be read, or do not cover a cluster."""


class ClusterError(InputError):
    """A cluster description makes no sense."""


class JobError(InputError):
    """A job asks for something that no cluster could give it."""


class InterferenceError(InputError):
    """A table of what jobs on the same GPU lose cannot be read, or lacks a pair that may come to share one."""


class ParameterError(InputError):
    """A policy's, placer's or generator's parameter is unknown or out of range."""


class UnknownNameError(InputError):
    """A policy, placer, model or fidelity of that name does not exist."""


class ContractViolation(MaatError):
    """A policy or placer broke a rule that every one must keep: a fault of the code, never of the input."""


def _raised_elsewhere(cls: type[InputError], fields: dict[str, Any]) -> InputError:
    return cls(**fields)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
