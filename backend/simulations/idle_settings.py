"""Refuses settings of a request that would have no effect.

Another setting decides instead, or a required one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backend.problems import FieldError, Invalid
from maat.api.simulations import ConditionsBody, SimulationBody
from maat.api.sweeps import SweepBody


def refuse(errors: Iterator[FieldError]) -> None:
    """Raise Invalid if there are any errors."""
    found = list(errors)
    if found:
        raise Invalid(" ".join(f"{error.message} {error.remedy}" for error in found), errors=found)


def idle_conditions(body: ConditionsBody) -> Iterator[FieldError]:
    """Yield errors in the conditions that simulations and sweeps share."""
    rules = [body.tuned]
    if isinstance(body, SimulationBody):
        rules += [run.tuned for run in body.runs]
    if isinstance(body, SweepBody):
        rules += body.tuned_by_policy.values()
    if not any(rules) and body.tuned_gpus != ConditionsBody.model_fields["tuned_gpus"].default:
        yield _idle(
            "/tuned_gpus",
            "It limits tuned jobs, and there are none.",
            "Give `tuned` too, or leave it out.",
            body.tuned_gpus,
        )


def fixed_and_varied(
    fixed: Mapping[str, tuple[str, Any]], varied: list[str]
) -> Iterator[FieldError]:
    """Yield errors for settings that the sweep varies too.

    `fixed`: name of an axis -> pointer and value of the request's setting.
    """
    for name in varied:
        if name in fixed:
            pointer, value = fixed[name]
            yield _idle(
                pointer,
                f"The sweep varies {name}, so this value would have no effect.",
                "Leave one of the two out.",
                value,
            )


def _idle(pointer: str, message: str, remedy: str, value: object) -> FieldError:
    return FieldError(pointer, "counts_for_nothing", message, remedy, value)
