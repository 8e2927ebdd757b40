"""What a job has and what else it could have had, as the API answers it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maat.api.job_answers import ChoiceOut, ConfigurationOut, MoveOut
from maat.scheduling.choice import Choice, Measured, Option, choice_of


def choice_out(evidence: Mapping[str, Any], measured: Measured | None = None) -> ChoiceOut | None:
    """Return what the evidence of a grant says; None if it names no GPUs.

    `measured`: of the job, beside what the round believed.
    """
    choice = choice_of(evidence, measured)
    if choice is None:
        return None
    return ChoiceOut(
        sentences=choice.sentences,
        chosen=_configuration(choice, choice.chosen, move=False),
        runner_up=_other(choice, choice.runner_up),
        alone=_other(choice, choice.alone),
    )


def _other(choice: Choice, option: Option | None) -> ConfigurationOut | None:
    if option is None:
        return None
    return _configuration(choice, option, move=option.name != choice.name)


def _configuration(choice: Choice, option: Option, *, move: bool) -> ConfigurationOut:
    return ConfigurationOut(
        gpu_type=option.gpu_type,
        gpu_count=option.gpu_count,
        goodput=option.goodput,
        measured_goodput=option.measured,
        value=option.value,
        price=option.price,
        limit=option.limit,
        free_gpus=option.free_gpus,
        move=_move(choice, option) if move and option.compared else None,
    )


def _move(choice: Choice, option: Option) -> MoveOut | None:
    seconds = choice.restart_seconds
    goodput = choice.chosen.goodput if choice.now is None else choice.now
    if seconds is None:
        return None
    return MoveOut(
        restart_seconds=seconds,
        samples_not_trained=None if goodput is None else goodput * seconds,
        pays_after_seconds=choice.pays_after_seconds(option),
        remaining_seconds=choice.remaining_seconds,
    )
