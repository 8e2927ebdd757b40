"""Routes of what there is to choose from: policies and placers, with their parameters as data, and fidelities."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.pagination import Page
from backend.web.strict_json import StrictRoute
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.registry import Entry
from maat.simulation.fidelity import FIDELITIES, Fidelity

router = APIRouter(tags=["policies"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.MODELS_READ))]


class ParameterOut(BaseModel):
    """One knob: its type (number, integer, boolean, string), default and range, its unit, and where its default comes from."""

    name: str
    type: str
    default: float | int | bool | str | None
    minimum: float | None
    maximum: float | None
    choices: list[str] | None
    unit: str | None
    help: str
    source: str | None


class DescribedOut(BaseModel):
    """`round_seconds`: a policy's own interval; `placer`: the one that goes with it. Both null for a placer."""

    name: str
    title: str
    summary: str
    round_seconds: float | None
    placer: str | None
    parameters: list[ParameterOut]


@router.get("/policies", operation_id="listPolicies")
def list_policies(_: Reader) -> Page[DescribedOut]:
    items = [
        _described(entry, POLICIES.build(entry.name).round_seconds, suiting_placer(entry.name))
        for entry in POLICIES
    ]
    return Page(items=items, next_cursor=None)


@router.get("/placers", operation_id="listPlacers")
def list_placers(_: Reader) -> Page[DescribedOut]:
    return Page(items=[_described(entry, None, None) for entry in PLACERS], next_cursor=None)


class FidelityOut(BaseModel):
    """A preset of modelling switches for every point where a paper and a published simulator disagree.

    `policy_parameters`, `placer_parameters`: by policy and placer, what holds where a request sets none. `round_seconds`: of every policy.
    """

    name: str
    summary: str
    round_seconds: float | None
    policy_parameters: dict[str, dict[str, Any]]
    placer_parameters: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, preset: Fidelity) -> FidelityOut:
        return cls(
            name=preset.name,
            summary=preset.summary,
            round_seconds=preset.round_seconds,
            policy_parameters={name: dict(own) for name, own in preset.policy_parameters.items()},
            placer_parameters={name: dict(own) for name, own in preset.placer_parameters.items()},
        )


@router.get("/fidelities", operation_id="listFidelities")
def list_fidelities(_: Reader) -> Page[FidelityOut]:
    """What simulations and sweeps may follow; the first is the default."""
    return Page(items=[FidelityOut.of(one) for one in FIDELITIES.values()], next_cursor=None)


def _described(entry: Entry[Any], round_seconds: float | None, placer: str | None) -> DescribedOut:
    parameters = [ParameterOut(**asdict(parameter)) for parameter in entry.parameters]
    return DescribedOut(
        name=entry.name,
        title=entry.title,
        summary=entry.summary,
        round_seconds=round_seconds,
        placer=placer,
        parameters=parameters,
    )
