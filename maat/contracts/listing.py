"""All contracts of a policy, in plain English, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hypothesis.strategies import SearchStrategy

from maat.contracts import decisions, quotas, repeating, weights
from maat.contracts.subject import Subject, Trial, class_trials, quota_trials, trials

Broken = Callable[[Subject, Trial], Iterator[str]]


@dataclass(frozen=True)
class Contract:
    """One contract. `broken` yields, in sentences, what breaks it in a trial."""

    sentence: str
    broken: Broken


@dataclass(frozen=True)
class Family:
    """Contracts on rounds of one kind. `share`: of the trials that others get."""

    rounds: Callable[[], SearchStrategy[Trial]]
    contracts: tuple[Contract, ...]
    share: float = 1.0


def _of_decision(claim: decisions.Claim) -> Broken:
    def broken(subject: Subject, trial: Trial) -> Iterator[str]:
        return claim(trial.decision(subject), trial.round_input)

    return broken


def _decision(sentence: str, claim: decisions.Claim) -> Contract:
    return Contract(sentence, _of_decision(claim))


ANY_ROUND = Family(
    trials,
    (
        Contract(
            "It changes nothing of the round that it is given.",
            repeating.changes_nothing_that_it_is_given,
        ),
        _decision(
            "It keeps what Maat checks in every round: limits, pins, counts, whole replicas.",
            decisions.keeps_the_rules_of_every_round,
        ),
        _decision(
            "It exceeds no limit, unless jobs that may not move hold more already.",
            decisions.exceeds_no_limit_unless_pinned_jobs_already_do,
        ),
        _decision(
            "It grants a job only what it can use: type, least and most GPUs, whole replicas.",
            decisions.grants_only_what_each_job_can_use,
        ),
        _decision(
            "A rigid job gets exactly what it asks for, or nothing.",
            decisions.gives_a_rigid_job_exactly_what_it_asks_for_or_nothing,
        ),
        _decision(
            "A job that restarts or may not be preempted keeps what it holds.",
            decisions.leaves_a_pinned_job_what_it_holds,
        ),
        _decision(
            "A job with a promised latency gets no GPUs that are known to break it.",
            decisions.breaks_no_promise_of_a_latency_bound_job_knowingly,
        ),
        _decision("Every job gets a reason, and it is true.", decisions.gives_every_job_a_reason),
        _decision(
            "What it reports of a solver is finite, and bounds what was decided.",
            decisions.has_a_certificate_that_bounds_what_was_decided,
        ),
        Contract("It decides the same again.", repeating.decides_the_same_again),
        Contract(
            "It remembers nothing in itself: after a restart it decides the same.",
            repeating.remembers_nothing_in_itself,
        ),
        Contract("Its decision stands as long as it says.", repeating.stands_as_long_as_it_says),
    ),
)
OF_WEIGHTS = Family(
    trials,
    (
        Contract(
            "Weights of jobs change nothing, if it does not say that it weighs them.",
            weights.weights_change_nothing_if_it_does_not_weigh,
        ),
    ),
    share=0.5,
)
UNDER_QUOTAS = Family(
    quota_trials,
    (
        Contract(
            "No tenant gets more than its quota allows.",
            quotas.no_tenant_has_more_than_its_ceiling,
        ),
        Contract(
            "Quotas leave jobs that may not move what they hold.",
            quotas.rows_of_quotas_leave_pinned_jobs_what_they_hold,
        ),
        Contract(
            "Nobody is kept below what is guaranteed by what others borrow.",
            quotas.nobody_is_kept_below_its_guarantee_by_what_others_borrow,
        ),
        Contract("Reasons name no other tenant.", quotas.reasons_name_only_the_job_s_own_tenant),
        Contract(
            "Under quotas it decides the same again.",
            quotas.decides_the_same_again_under_quotas,
        ),
    ),
    share=0.5,
)
OF_CLASSES = Family(
    class_trials,
    (
        Contract(
            "No job waits for GPUs that lower classes of its tenant hold.",
            quotas.lower_classes_hold_nothing_that_a_waiting_job_was_offered,
        ),
        Contract(
            "No job loses its GPUs to what other tenants are lent.",
            quotas.nobody_lost_all_to_what_others_were_lent,
        ),
    ),
    share=0.5,
)
BY_PLACERS = Family(
    trials,
    (Contract("Every placer can place what it decides.", repeating.is_placed_by_every_placer),),
    share=0.2,
)
FIXED = (
    Contract("Without jobs it grants nothing.", repeating.grants_nothing_without_jobs),
    Contract("It puts no more jobs on a GPU than it says.", repeating.shares_gpus_as_it_says),
)
FAMILIES = (ANY_ROUND, OF_WEIGHTS, UNDER_QUOTAS, OF_CLASSES, BY_PLACERS)
