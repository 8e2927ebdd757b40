"""Settings of a request that would count for nothing, because another one decides or is missing: refused instead of ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backend.problems import FieldError, Invalid
from maat.api.simulations import ConditionsBody
from maat.simulation.fidelity import FIDELITIES

ROUND = "round_seconds"


def refuse(errors: Iterator[FieldError]) -> None:
    """Raises Invalid where there are any."""
    found = list(errors)
    if found:
        raise Invalid(" ".join(f"{error.message} {error.remedy}" for error in found), errors=found)


def idle_conditions(body: ConditionsBody) -> Iterator[FieldError]:
    """Of what simulations and sweeps have in common."""
    if body.tuned is None and body.tuned_gpus != ConditionsBody.model_fields["tuned_gpus"].default:
        yield _idle(
            "/tuned_gpus",
            "It bounds tuned jobs, of which there are none.",
            "Give `tuned` too, or leave it out.",
            body.tuned_gpus,
        )


def idle_parameters(
    body: ConditionsBody, parameters: Mapping[str, Any], pointer: str
) -> Iterator[FieldError]:
    """Of a policy's parameters below `pointer`."""
    if ROUND not in parameters:
        return
    of_preset = FIDELITIES[body.fidelity].round_seconds if body.fidelity in FIDELITIES else None
    if of_preset is not None:
        message = (
            f"The fidelity {body.fidelity} has rounds of {of_preset:g} s, whatever the policy."
        )
        yield _idle(
            f"{pointer}/{ROUND}",
            message,
            "Give the request's round_seconds instead.",
            parameters[ROUND],
        )
    elif body.round_seconds is not None:
        message = "The round's duration is given twice: round_seconds holds for every policy."
        yield _idle(f"{pointer}/{ROUND}", message, "Leave one of the two out.", parameters[ROUND])


def fixed_and_varied(
    fixed: Mapping[str, tuple[str, Any]], varied: list[str]
) -> Iterator[FieldError]:
    """`fixed`: name of an axis -> where the request sets the same, and to what."""
    for name in varied:
        if name in fixed:
            pointer, value = fixed[name]
            yield _idle(
                pointer,
                f"The sweep varies {name}, so that this value would count for nothing.",
                "Leave one of the two out.",
                value,
            )


def _idle(pointer: str, message: str, remedy: str, value: object) -> FieldError:
    return FieldError(pointer, "counts_for_nothing", message, remedy, value)
