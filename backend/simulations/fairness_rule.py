"""The rule of finish-time fairness by which an answer gives rho.

Results store the figures of every rule; an answer has those of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query

from maat.laboratory.figures import DEFAULT_RULE, by_rule
from maat.vocabulary import FairnessRule

_DESCRIPTION = (
    "How finish-time fairness rho is computed. mean-of-ratios: against the job alone on N / n_avg "
    "GPUs of each type, with the ratios averaged. ratio-to-mean: the ratio to the mean of these "
    "times. share-of-type: like mean-of-ratios, on N_g / n_avg GPUs of type g. A simulation of an "
    "earlier version stores mean-of-ratios only: by another rule its rho is null."
)
AskedRule = Annotated[FairnessRule, Query(description=_DESCRIPTION)]


def result_by(result: Mapping[str, Any], rule: FairnessRule) -> dict[str, Any]:
    """Return a stored result with rho, and the figures from it, by this rule only.

    The answer names the rule in `fairness`.
    """
    jobs = [_job(job, rule) for job in result["jobs"]]
    measured = sum(job["rho"] is not None for job in jobs)
    figures = {
        "worst_rho": None,
        "unfair_fraction": None,
        **by_rule(result.get("fairness") or {}, rule),
        "jobs": measured,
    }
    return {**result, "jobs": jobs, "fairness": {"rule": rule.value, **figures}}


def _job(job: Mapping[str, Any], rule: FairnessRule) -> dict[str, Any]:
    others = job.get("rho_by_rule") or {}
    rho = job.get("rho") if rule is DEFAULT_RULE else others.get(rule.value)
    return {**{name: value for name, value in job.items() if name != "rho_by_rule"}, "rho": rho}
