"""What an own policy returned, as a decision.

GPU type and count by job become grants with the batch size of most goodput; what it did not name
gets a reason. Answers that are neither this nor a `Decision` are refused with words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.errors import InputError, PolicyFailed
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job, JobId
from maat.scheduling.matrix import evaluate_pairs
from maat.scheduling.pins import why_pinned
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport

Granted = Mapping[JobId, tuple[str, int] | Grant]
"""What a function grants: GPU type and count by job."""

MOST_STATE_BYTES = 1_000_000
"""Of what a policy remembers between rounds: it is written with every round."""


def decision_of(answer: object, round_input: RoundInput, *, policy: str) -> Decision:
    """Return the answer of the policy of that name as a decision.

    Jobs that a round may not move keep what they have, whatever a mapping says of them. Raises
    InputError for what is no grants, and PolicyFailed for a `Decision` that cannot be read.
    """
    if isinstance(answer, Decision):
        _check_decision(answer, policy)
        return replace(answer, reasons=_every_reason(answer, round_input))
    grants = dict(round_input.pinned)
    for job_id, grant in _grants(answer, policy).items():
        if job_id not in round_input.pinned:
            grants[job_id] = grant
    decision = Decision(_with_batches(grants, round_input), SolveReport(method=policy), {})
    return replace(decision, reasons=_every_reason(decision, round_input))


def _check_decision(decision: Decision, policy: str) -> None:
    """Raise PolicyFailed for fields of other types than a decision has: nobody else checks them."""
    wanted: Mapping[str, type] = {"grants": Mapping, "report": SolveReport, "reasons": Mapping}
    for name, kind in {**wanted, "state": PolicyState}.items():
        if not isinstance(getattr(decision, name), kind):
            got = type(getattr(decision, name)).__name__
            raise PolicyFailed(
                policy, f"returned a decision whose {name} is a {got}, no {kind.__name__}"
            )
    if not all(isinstance(grant, Grant) for grant in decision.grants.values()):
        raise PolicyFailed(policy, "returned a decision that grants something else than a Grant")
    _check_state(decision.state, policy)


def _check_state(state: PolicyState, policy: str) -> None:
    if not state.data:
        return
    try:
        size = len(json.dumps(state.data, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise PolicyFailed(policy, "keeps a state that is no JSON data") from None
    if size > MOST_STATE_BYTES:
        raise PolicyFailed(
            policy, f"keeps a state of {size} bytes, above the {MOST_STATE_BYTES} that it may have"
        )


def _grants(answer: object, policy: str) -> dict[JobId, Grant]:
    if not isinstance(answer, Mapping):
        raise _no_grants(answer, policy)
    grants: dict[JobId, Grant] = {}
    for job_id, given in answer.items():
        match given:
            case Grant():
                grants[job_id] = given
            case None:
                continue
            case (str() as gpu_type, int() | np.integer() as count):
                if count != 0:
                    grants[job_id] = Grant(gpu_type, int(count))
            case _:
                raise _no_grants({job_id: given}, policy)
    return grants


def _no_grants(answer: object, policy: str) -> InputError:
    return InputError(
        f"{policy} returned no grants",
        field="policy",
        value=repr(answer) if answer is None else answer,
        remedy='Return GPU type and count by job id, such as {"job-1": ("t4", 4)}.',
    )


def _every_reason(decision: Decision, round_input: RoundInput) -> Mapping[JobId, Reasons]:
    """Return the policy's own reasons, and one for each job that it gave none."""
    own, named = decision.reasons, set(decision.reasons)
    missing = [job for job in round_input.jobs if job.id not in named]
    if not missing:
        return own  # as they are: some are only computed when they are read
    return {**own, **{job.id: _reason(job, decision, round_input) for job in missing}}


def _reason(job: Job, decision: Decision, round_input: RoundInput) -> Reasons:
    if job.id in round_input.pinned:
        return why_pinned(job)
    grant = decision.grants.get(job.id)
    if grant is None:
        return Reasons(ReasonCode.NOT_CHOSEN)
    return Reasons(ReasonCode.GRANTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count})


def _with_batches(grants: Mapping[JobId, Grant], round_input: RoundInput) -> dict[JobId, Grant]:
    """Give every grant without a batch plan the one of most goodput, as far as it is known."""
    cluster, row_of = round_input.cluster, {job.id: i for i, job in enumerate(round_input.jobs)}
    without = [
        job_id
        for job_id, grant in grants.items()
        if grant.batch is None
        and job_id not in round_input.pinned
        and job_id in row_of
        and can_train(round_input.job_by_id[job_id], grant, round_input)
    ]
    kinds = _ints(cluster.type_index[grants[job_id].gpu_type] for job_id in without)
    counts = _ints(grants[job_id].gpu_count for job_id in without)
    pairs = evaluate_pairs(
        round_input.jobs,
        cluster,
        job=_ints(row_of[job_id] for job_id in without),
        gpu_type=kinds,
        gpu_count=counts,
        node_count=-(-counts // np.maximum(cluster.gpus_per_node[kinds], 1)),
        column=np.zeros_like(counts),
        projection=round_input.projection,
    )
    plans: dict[JobId, BatchPlan] = {
        job_id: pairs.plans.plan(pair)
        for pair, job_id in enumerate(without)
        if pairs.goodput[pair] > 0
    }
    return {job_id: replace(g, batch=plans.get(job_id, g.batch)) for job_id, g in grants.items()}


def can_train(job: Job, grant: Grant, round_input: RoundInput) -> bool:
    """Return whether the grant is one that a job can have; the checks of a round refuse others."""
    return (
        grant.gpu_type in round_input.cluster.type_index
        and job.spec.may_use(grant.gpu_type)
        and grant.gpu_count > 0
        and grant.gpu_count % job.spec.replica_gpus(grant.gpu_type) == 0
    )


def _ints(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)
