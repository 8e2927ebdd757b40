"""Where own policies run: in this process, or where a service has them run.

A service sets its way once, before the first policy is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from maat.scheduling.rounds import RoundInput


class Runner(Protocol):
    """Calls a method of an own policy and returns its answer.

    `where`: `module:Class`; `knobs`: all of them by name; `method`: of the policies' protocol.
    Raises what the policy raises, and PolicyFailed if it does not answer.
    """

    def __call__(
        self,
        where: str,
        knobs: Mapping[str, object],
        method: str,
        round_input: RoundInput,
        /,
        *,
        name: str,
    ) -> object: ...


_runner: Runner | None = None


def run_own_policies_by(runner: Runner | None) -> None:
    """Have the own policies that are built from now on called by `runner`; None: here."""
    global _runner
    _runner = runner


def present_runner() -> Runner | None:
    return _runner
