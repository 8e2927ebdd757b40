"""The address of a form that asks again for what a simulation or the like was asked for.

Of a request that says what no address can, such as a file, there is none: a form that asked for
less would mislead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TypeVar

from frontend.components import conditions
from frontend.components.parameter_fields import POLICY_PARAMETER, ROUND, in_address
from frontend.formatting import as_typed
from frontend.routing import path_to
from frontend.runs import StoredRequest

Value = TypeVar("Value")

_OF_A_RUN = ("policy", "placer", "seed")


def simulation_again(request: StoredRequest) -> str | None:
    """Return the address of the form that asks for the same simulation; None if it cannot."""
    traces, runs = request["traces"], request["runs"]
    first = traces[0]
    if first["kind"] == "cluster":
        return _replay_again(request, first) if len(traces) == 1 else None
    shared, parameters = conditions.asked_by(request), _parameters_of(runs)
    if first["kind"] != "generated" or shared is None or parameters is None:
        return None
    drawn = [{**first, "seed": first["seed"] + place} for place in range(len(traces))]
    policies, placers, seeds = (_once(run[name] for run in runs) for name in _OF_A_RUN)
    asked = [tuple(run[name] for name in _OF_A_RUN) for run in runs]
    all_of = list(product(policies, placers, seeds))
    if drawn != traces or asked != all_of or (None in placers and len(placers) > 1):
        return None
    if request.get("round_seconds") is not None:  # in the form a policy has its own
        return None
    return path_to(
        "/simulate",
        **_common(request, first, seeds),
        seed=str(first["seed"]),
        draws=str(len(traces)),
        policies=policies,
        placers=[placer for placer in placers if placer is not None],
        **shared,
        **parameters,
    )


def _replay_again(request: StoredRequest, trace: StoredRequest) -> str | None:
    """Return the address of the form that replays as many hours up to now, by these policies."""
    hours = (trace.get("since_seconds_ago") or 0.0) / 3600.0
    if trace.get("until_seconds_ago") or not 1 <= hours == int(hours):
        return None
    policies = _once(run["policy"] for run in request["runs"])
    return path_to(
        "/simulate", replay=str(int(hours)), policies=policies, cluster=trace["cluster_id"]
    )


def sweep_again(request: StoredRequest) -> str | None:
    """Return the address of the form that asks for the same sweep; None if it cannot."""
    trace, vary = request["trace"], request["vary"]
    shared, parameters = conditions.asked_by(request), _parameters_of([request])
    if trace["kind"] != "generated" or shared is None or parameters is None:
        return None
    if POLICY_PARAMETER in parameters and any(axis["name"] == "policy" for axis in vary):
        return None
    varied = {
        f"{what}{place}": text
        for place, axis in enumerate(vary, start=1)
        for what, text in (("vary", axis["name"]), ("values", _listed(axis["values"])))
    }
    return path_to(
        "/sweeps",
        **_common(request, trace, request["seeds"]),
        **varied,
        policy=request["policy"],
        placer=request["placer"],
        **shared,
        **parameters,
    )


def experiment_again(kind: str, request: StoredRequest) -> str | None:
    """Return the address of the form that asks for the same experiment; None if it cannot."""
    trace, profiles = request.get("trace"), request.get("profiles")
    if request.get("policy_parameters") or (trace and trace["kind"] != "generated"):
        return None
    if trace and None in (trace["jobs"], trace["hours"]):
        return None
    left_out = ("kind", "trace", "cluster", "fixed_nodes", "profiles", "policy_parameters")
    plain = {
        name: as_typed(value)
        for name, value in request.items()
        if name not in left_out and value is not None
    }
    if kind == "autoscaling":
        if plain.pop("seed") != "0":
            return None
        if trace:
            drawn = ("family", "jobs", "hours", "xxl_share", "seed")
            plain |= {"trained": "generated", **{name: as_typed(trace[name]) for name in drawn}}
    fixed = request.get("fixed_nodes")
    return path_to(
        "/experiments",
        kind=kind,
        gpus=request["cluster"],
        profiles=profiles,
        fixed_nodes=None if fixed is None else _listed(fixed),
        **plain,
    )


def _parameters_of(runs: Iterable[StoredRequest]) -> dict[str, list[str]] | None:
    """Return the parameters of policies and placers, and the policies' rounds, for an address.

    None if runs of one policy or placer differ in them, or a form could not hold one.
    """
    found: dict[str, Mapping[str, object]] = {}
    for run in runs:
        rounds = run.get("round_seconds")
        of_policy = {**(run.get("policy_parameters") or {})} | (
            {} if rounds is None else {ROUND: rounds}
        )
        of_placer = run.get("placer_parameters") or {}
        if of_placer and run["placer"] is None:
            return None
        for owner, given in (
            (f"policy:{run['policy']}", of_policy),
            (f"placer:{run['placer']}", of_placer),
        ):
            if found.setdefault(owner, given) != given or {None, ""} & set(given.values()):
                return None
    return in_address(found)


def _common(request: StoredRequest, trace: StoredRequest, seeds: Sequence[int]) -> dict[str, str]:
    """Return what both forms have."""
    return {
        "name": request["name"],
        **{
            name: as_typed(trace[name])
            for name in ("family", "jobs", "hours", "xxl_share")
            if trace.get(name) is not None and (name, trace[name]) != ("xxl_share", 0)
        },
        "gpus": request["cluster"],
        "fidelity": request["fidelity"],
        "seeds": _listed(seeds),
    }


def _once(values: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(values))


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(as_typed, values))
