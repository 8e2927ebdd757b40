"""Claims of a policy that is asked again: the same answer, from what a round gives it alone."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import replace

from maat.contracts.generated import NOW
from maat.contracts.small_rounds import rigid_job, round_of
from maat.contracts.subject import Subject, Trial
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.checks import check_decision
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ContractViolation
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import Decision, PolicyState, RoundInput


def changes_nothing_that_it_is_given(subject: Subject, trial: Trial) -> Iterator[str]:
    if trial.is_changed_by(subject):
        yield "the jobs, nodes, limits, pins or state of the round are others after it decided"


def decides_the_same_again(subject: Subject, trial: Trial) -> Iterator[str]:
    again = subject.policy.allocate(copy_of(trial.round_input))
    yield from differences(trial.decision(subject), again)


def remembers_nothing_in_itself(subject: Subject, trial: Trial) -> Iterator[str]:
    """A new one decides as one that has decided other rounds."""
    fresh = subject.make().allocate(copy_of(trial.round_input))
    yield from differences(trial.decision(subject), fresh)


def copy_of(round_input: RoundInput) -> RoundInput:
    """Return the same round with nothing computed, and arrays of its own."""
    copy: RoundInput = pickle.loads(pickle.dumps(round_input))  # noqa: S301 - our own bytes
    return copy


def differences(first: Decision, again: Decision) -> Iterator[str]:
    """Yield how two decisions differ."""
    if list(first.grants.items()) != list(again.grants.items()):
        yield f"it granted {_grants(first)}, and then {_grants(again)}"
    if first.state != again.state:
        yield "it remembers something else"
    reasons = [{j: r.primary for j, r in each.reasons.items()} for each in (first, again)]
    if reasons[0] != reasons[1]:
        yield "it gives other reasons"


def _grants(decision: Decision) -> str:
    given = [f"{i}: {g.gpu_count} {g.gpu_type}" for i, g in decision.grants.items()]
    return ", ".join(given) or "nothing"


def stands_as_long_as_it_says(subject: Subject, trial: Trial) -> Iterator[str]:
    round_input, policy, first = trial.round_input, subject.policy, trial.decision(subject)
    second = policy.allocate(replace(round_input, state=first.state))
    until = min(second.stands_until, NOW + trial.seconds_ahead)
    is_settled = (
        list(second.grants.items()) == list(first.grants.items()) and second.state == first.state
    )
    if until <= NOW or not is_settled:
        return
    again = policy.allocate(_later(round_input, first.state, until - NOW))
    if list(again.grants.items()) != list(first.grants.items()) or again.state != first.state:
        yield (
            f"it said that {_grants(first)} stands for {until - NOW:g} s, "
            f"and then granted {_grants(again)}"
        )


def _later(round_input: RoundInput, state: PolicyState, seconds: float) -> RoundInput:
    """Return the same jobs on the same GPUs after some work and new measurements."""
    jobs = []
    for job in round_input.jobs:
        if job.allocation is not None:
            kind, count = job.allocation.gpu_type, job.allocation.gpu_count
            served = {
                **job.attained_gpu_seconds,
                kind: job.attained_gpu_seconds.get(kind, 0.0) + seconds * count,
            }
            belief = replace(
                job.belief, gradient=GradientStatistics(1.0, 5.0), peak_replica_count=count
            )
            job = replace(
                job,
                attained_gpu_seconds=served,
                remaining_work=job.remaining_work / 2,
                belief=belief,
            )
        jobs.append(job)
    number = round_input.round_number + math.ceil(seconds / round_input.round_seconds)
    return replace(
        round_input, now=NOW + seconds, round_number=number, jobs=tuple(jobs), state=state
    )


def is_placed_by_every_placer(subject: Subject, trial: Trial) -> Iterator[str]:
    check_decision(trial.decision(subject), trial.round_input)
    for name in PLACERS.names:
        try:
            plan_round(trial.round_input, subject.policy, PLACERS.build(name))
        except ContractViolation as broken:
            yield f"with the placer {name}: {broken}"


def jobs_on_shared_gpus(subject: Subject) -> int:
    """Return how many of ten jobs of one GPU it runs on four GPUs with two places each."""
    cluster = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)
    jobs = [rigid_job(f"job-{i}", 1, step_seconds=1.0) for i in range(10)]
    return len(subject.policy.allocate(round_of(cluster, jobs, now=100_000.0)).grants)


def shares_gpus_as_it_says(subject: Subject, trial: Trial) -> Iterator[str]:
    del trial
    sharing = getattr(subject.policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS)
    most = 4 if sharing is GpuSharing.NEVER else 8
    if (granted := jobs_on_shared_gpus(subject)) > most:
        yield (
            f"its gpu_sharing is {sharing}, and on four GPUs with two places each it runs "
            f"{granted} jobs of one GPU"
        )


def grants_nothing_without_jobs(subject: Subject, trial: Trial) -> Iterator[str]:
    del trial
    decision = subject.policy.allocate(round_of(Cluster.parse("t4=1x4"), []))
    if decision.grants or decision.reasons:
        yield "there is no job, and it grants or explains something"
