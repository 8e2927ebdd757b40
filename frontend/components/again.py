"""The address of a form that asks again for what a simulation or a sweep was asked for.

A form's address holds its plain values. Of a request that says more, such as files, conditions or
parameters, there is none: a form that asked for less would mislead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeVar

from frontend.routing import path_to
from frontend.runs import StoredRequest
from maat.api.simulations import ConditionsBody

Value = TypeVar("Value")

_PLAIN = frozenset({"name", "cluster", "fidelity"})
_OF_A_RUN = ("policy", "placer", "seed")
_OF_ITS_OWN = ("policy_parameters", "placer_parameters", "round_seconds")


def simulation_again(request: StoredRequest) -> str | None:
    """Return the address of the form that asks for the same simulation; None if it cannot."""
    traces, runs = request["traces"], request["runs"]
    first = traces[0]
    if first["kind"] != "generated" or not _is_plain(request):
        return None
    drawn = [{**first, "seed": first["seed"] + place} for place in range(len(traces))]
    policies, placers, seeds = (_once(run[name] for run in runs) for name in _OF_A_RUN)
    asked = [tuple(run[name] for name in _OF_A_RUN) for run in runs]
    all_of = list(product(policies, placers, seeds))
    if drawn != traces or asked != all_of or (None in placers and len(placers) > 1):
        return None
    if any(any(run.get(name) for name in _OF_ITS_OWN) for run in runs):
        return None
    return path_to(
        "/simulate",
        **_common(request, first, seeds),
        seed=str(first["seed"]),
        draws=str(len(traces)),
        policies=policies,
        placers=[placer for placer in placers if placer is not None],
    )


def sweep_again(request: StoredRequest) -> str | None:
    """Return the address of the form that asks for the same sweep; None if it cannot."""
    trace, vary = request["trace"], request["vary"]
    parameters = any(request.get(name) for name in _OF_ITS_OWN)
    if trace["kind"] != "generated" or parameters or not _is_plain(request):
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
    )


def _is_plain(request: StoredRequest) -> bool:
    """Return whether the conditions of a request are those of a form that nobody has touched."""
    return all(
        request.get(name) == field.get_default(call_default_factory=True)
        for name, field in ConditionsBody.model_fields.items()
        if name not in _PLAIN
    )


def _common(request: StoredRequest, trace: StoredRequest, seeds: Sequence[int]) -> dict[str, str]:
    """Return what both forms have."""
    return {
        "name": request["name"],
        **{
            name: _text(trace[name])
            for name in ("family", "jobs", "hours")
            if trace.get(name) is not None
        },
        "gpus": request["cluster"],
        "fidelity": request["fidelity"],
        "seeds": _listed(seeds),
    }


def _once(values: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(values))


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(_text, values))


def _text(value: object) -> str:
    """Return a value as it is typed: 4 and not 4.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
