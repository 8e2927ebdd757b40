"""The library's errors: one tree, each named for what happened.

Each is worded for the person who can act. How an error is shown is decided elsewhere: the CLI
exits with code 2, the API answers problem+json.
"""

from __future__ import annotations

from typing import Any


class MaatError(Exception):
    """Any request that Maat refuses or could not carry out."""


class InputError(MaatError):
    """Input from a person or program that cannot be used.

    Names field, value, remedy, and where the input stood.
    """

    row_word = "row"

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
        """Pickle by fields: another process than the one that raised it may show it."""
        return _raised_elsewhere, (type(self), vars(self))

    def __str__(self) -> str:
        place = "" if self.source is None else self.source
        if self.row is not None:
            row = f"{self.row_word} {self.row}"
            place = f"{place}, {row}" if place else row
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
    """A table of sharing slowdowns cannot be read, or lacks a pair that may share."""


class LocalityError(InputError):
    """A table of steps within a node and across nodes cannot be read."""


class ParameterError(InputError):
    """A policy's, placer's or generator's parameter is unknown or out of range."""


class ClusterTooSmall(ParameterError):
    """More GPUs are reserved or guaranteed than a cluster has; a larger one may have them."""


class UnknownNameError(InputError):
    """A policy, placer, model or fidelity of that name does not exist."""


class ContractViolation(MaatError):
    """A policy or placer broke a rule of its protocol: a bug, never bad input."""


class PolicyFailed(MaatError):
    """A policy did not decide: it raised an error, answered with rubbish, or took too long.

    `clause` says what it did, for everybody ("raised KeyError in fair.py, line 12"); `detail` is
    the message of its own error, for the operator.
    """

    def __init__(self, policy: str, clause: str, *, detail: str = "") -> None:
        self.policy, self.clause, self.detail = policy, clause, detail
        super().__init__(f"the policy {policy} {clause}{f': {detail}' if detail else ''}")

    def __reduce__(self) -> tuple[object, ...]:
        return _failed_elsewhere, (self.policy, self.clause, self.detail)


def _failed_elsewhere(policy: str, clause: str, detail: str) -> PolicyFailed:
    return PolicyFailed(policy, clause, detail=detail)


def _raised_elsewhere(cls: type[InputError], fields: dict[str, Any]) -> InputError:
    return cls(**fields)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
