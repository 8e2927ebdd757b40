"""Fairness as a report tells it, from the answers of backend.fairness."""

from __future__ import annotations

from collections.abc import Iterator

from backend.reports.facts import OTHERS, Fairness, TenantFairness
from maat.api.fairness import FairnessOut, RhoFiguresOut, SharesOut, TenantRhoOut
from maat.vocabulary import FairnessState, WithoutRho

ALL = "all tenants"
TO_COME = (FairnessState.WAITING, FairnessState.WORKING)


def fairness_of(found: FairnessOut, shares: SharesOut) -> Fairness:
    """Return how fair the period was; tenants without a finished job have their shares."""
    rho = {one["tenant"]: one for one in found["tenants"]}
    whole = [] if shares["whole"] is None else shares["whole"]["tenants"]
    parts = {one["tenant"]: (one["deserved"], one["actual"]) for one in whole}
    names = [*rho, *(name for name in parts if name not in rho)]
    each = [_tenant(name, rho.get(name), parts.get(name)) for name in names]
    # Charts have room for the first ones: those who hold most, not those with few jobs.
    each.sort(key=lambda one: (one.tenant == OTHERS, -(one.actual or 0.0), -one.jobs, one.tenant))
    return Fairness(
        _fairness(ALL, found["all"]),
        each,
        to_come=sum(found["progress"]["by_state"][state] for state in TO_COME),
        without=[
            (one["jobs"], one["sentence"])
            for one in found["without_rho"]
            if one["reason"] != WithoutRho.NOT_SUCCEEDED
        ],
        formula=_formula(found, shares),
        notes=list(_notes(found)),
    )


def _tenant(
    name: str | None, rho: TenantRhoOut | None, share: tuple[float, float] | None
) -> TenantFairness:
    shown = OTHERS if name is None else name
    deserved, actual = (None, None) if share is None else share
    if rho is None:
        return TenantFairness(shown, 0, None, None, None, None, deserved, actual)
    return _fairness(shown, rho["figures"], deserved, actual)


def _fairness(
    name: str,
    figures: RhoFiguresOut,
    deserved: float | None = None,
    actual: float | None = None,
) -> TenantFairness:
    return TenantFairness(
        name,
        figures["jobs"],
        figures["median"],
        figures["p90"],
        figures["worst"],
        figures["unfair_share"],
        deserved,
        actual,
    )


def _formula(found: FairnessOut, shares: SharesOut) -> str:
    formula = found["formula"]
    return (
        f"{formula['text']} (rule {formula['rule'].value}, version {formula['version']}). "
        f"{formula['baseline']} Up to 1 is fair. Shares: {shares['formula']}"
    )


def _notes(found: FairnessOut) -> Iterator[str]:
    for one in found["without_rho"]:
        jobs = f"{one['jobs']} job{'' if one['jobs'] == 1 else 's'}"
        yield f"{jobs} left out: {one['sentence']}"
    if found["older_versions"]:
        yield f"The rho of {found['older_versions']} jobs follows an older version of the formula."
