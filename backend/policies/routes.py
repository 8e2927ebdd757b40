"""Routes of policies and placers, with their parameters, and of fidelities."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.answers import answer_of, whole_list
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.policies import DescribedOut, FidelityOut, ParameterOut
from maat.laboratory.requested import FIDELITIES, Fidelity
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import Policy
from maat.scheduling.registry import Entry
from maat.scheduling.weights import weighs_jobs

router = APIRouter(tags=["policies"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.MODELS_READ))]


@router.get("/policies", operation_id="listPolicies")
def list_policies(_: Reader) -> Page[DescribedOut]:
    items = [_policy(entry) for entry in POLICIES]
    return Page(items=items, next_cursor=None)


@router.get("/placers", operation_id="listPlacers")
def list_placers(_: Reader) -> Page[DescribedOut]:
    return Page(items=[_described(entry) for entry in PLACERS], next_cursor=None)


@router.get("/fidelities", operation_id="listFidelities")
def list_fidelities(_: Reader) -> Page[FidelityOut]:
    """The fidelities for simulations and sweeps; the first is the default."""
    return whole_list(list(FIDELITIES.values()), _fidelity)


def _fidelity(preset: Fidelity) -> FidelityOut:
    return answer_of(
        FidelityOut,
        preset,
        policy_parameters={name: dict(own) for name, own in preset.policy_parameters.items()},
        placer_parameters={name: dict(own) for name, own in preset.placer_parameters.items()},
    )


def _policy(entry: Entry[Policy]) -> DescribedOut:
    policy = POLICIES.build(entry.name)
    return DescribedOut(
        {
            **_described(entry),
            "round_seconds": policy.default_round_seconds,
            "placer": suiting_placer(entry.name),
            "weighs_jobs": weighs_jobs(policy),
        }
    )


def _described(entry: Entry[Any]) -> DescribedOut:
    parameters = [answer_of(ParameterOut, parameter) for parameter in entry.parameters]
    return DescribedOut(
        name=entry.name,
        title=entry.title,
        summary=entry.summary,
        round_seconds=None,
        placer=None,
        weighs_jobs=None,
        parameters=parameters,
    )
