"""A round whose policy failed: what runs keeps its GPUs, nothing new starts, and it says why.

A cluster must outlive a policy that raises an error, answers with rubbish, breaks a rule or takes
too long. Only live rounds are rescued: a simulation ends with the error, which its reader wants.
"""

from __future__ import annotations

from dataclasses import replace

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.gpu_places import with_pairs_that_stay
from maat.scheduling.own.failures import public_words
from maat.scheduling.pins import pinned_grants
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.report import SolveReport, SolveStatus

_THEN = (
    "What runs goes on, and nothing new starts; the next round asks it again. "
    "Mend the policy, or choose another for the cluster."
)


def keeping_what_runs(round_input: RoundInput) -> RoundInput:
    """Return the round with every job that holds GPUs pinned to them."""
    jobs, cluster = round_input.jobs, round_input.cluster
    running = {job.id for job in jobs if job.allocation is not None}
    pinned = pinned_grants(jobs, cluster, running)
    limits = with_pairs_that_stay(round_input.limits, cluster, jobs, pinned)
    return replace(round_input, pinned=pinned, limits=limits)


def decision_after_failure(round_input: RoundInput, policy: str, error: Exception) -> Decision:
    """Return the decision that grants what jobs hold. `policy`: whose error it is.

    What the policy remembers stays as it is, so that it goes on from there once it is mended.
    """
    words = public_words(policy, error, job_ids=[job.id for job in round_input.jobs])
    report = SolveReport(
        status=SolveStatus.POLICY_FAILED,
        fallback=True,
        message=f"The policy {policy} {words.rstrip('.')}. {_THEN}",
    )
    reasons = {job.id: Reasons(ReasonCode.POLICY_FAILED) for job in round_input.jobs}
    return Decision(dict(round_input.pinned), report, reasons, round_input.state)
