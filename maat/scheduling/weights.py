"""Whether a policy weighs jobs, and which weights its reasons name.

A policy that weighs counts a job of weight w as w jobs like it. What that means to its objective or
its order is the policy's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from maat.scheduling.explain import OF_TURN, ReasonCode, Reasons
from maat.scheduling.job import Job, JobId
from maat.scheduling.protocols import Policy
from maat.scheduling.rounds import Decision, RoundInput

_MATTERS = OF_TURN | {ReasonCode.GRANTED}


def weighs_jobs(policy: Policy) -> bool:
    """Return whether the policy, with its parameters, counts jobs by weight."""
    return bool(getattr(policy, "weighs_jobs", False))


def with_weights(decision: Decision, round_input: RoundInput, policy: Policy) -> Decision:
    """Return the decision, whose reasons name each weight that mattered: not 1, and weighed."""
    if not weighs_jobs(policy) or all(job.spec.weight == 1.0 for job in round_input.jobs):
        return decision
    return replace(decision, reasons=_Weighed(decision.reasons, round_input.job_by_id))


@dataclass(frozen=True)
class _Weighed(Mapping[JobId, Reasons]):
    """Reasons with the weights of jobs; each is computed when it is read."""

    of_policy: Mapping[JobId, Reasons]
    jobs: Mapping[JobId, Job]

    def __getitem__(self, job_id: JobId) -> Reasons:
        why, job = self.of_policy[job_id], self.jobs.get(job_id)
        if job is None or job.spec.weight == 1.0 or why.primary not in _MATTERS:
            return why
        return replace(why, evidence={**why.evidence, "weight": job.spec.weight})

    def __iter__(self) -> Iterator[JobId]:
        return iter(self.of_policy)

    def __len__(self) -> int:
        return len(self.of_policy)
