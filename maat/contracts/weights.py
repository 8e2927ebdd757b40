"""The claim of a policy that does not weigh jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from maat.contracts.subject import Subject, Trial
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.rounds import RoundInput
from maat.scheduling.weights import weighs_jobs


def weights_change_nothing_if_it_does_not_weigh(subject: Subject, trial: Trial) -> Iterator[str]:
    if weighs_jobs(subject.policy):
        return
    weighed = trial.round_input
    for row, weight in enumerate(trial.weights):
        weighed = with_weight(weighed, row, weight)
    placer = PLACERS.build("packed-sticky")
    one, other = (plan_round(x, subject.policy, placer) for x in (trial.round_input, weighed))
    if one.decision.grants != other.decision.grants:
        yield "with other weights of jobs it grants something else; it does not set weighs_jobs"
    elif one.reasons != other.reasons:
        yield "with other weights of jobs it gives other reasons; it does not set weighs_jobs"


def with_weight(round_input: RoundInput, row: int, weight: float) -> RoundInput:
    """Return the round with another weight of one job."""
    jobs = list(round_input.jobs)
    jobs[row] = replace(jobs[row], spec=replace(jobs[row].spec, weight=weight))
    return replace(round_input, jobs=tuple(jobs))
