"""A simulation or sweep asked for again: the form's address asks for the same, or there is none."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from frontend.components.again import simulation_again, sweep_again
from frontend.pages import simulate, sweeps
from maat.api.simulations import SimulationBody
from maat.api.sweeps import SweepBody

TRACE: dict[str, Any] = {
    "kind": "generated",
    "family": "helios",
    "jobs": 12,
    "hours": 0.5,
    "xxl_share": 0.25,
    "seed": 7,
}
SHARED = {"name": "night", "cluster": "a100=1x4", "fidelity": "sia-artifact"}
RUNS = [
    {"policy": policy, "placer": placer, "seed": seed}
    for policy in ("las", "sia")
    for placer in ("pal", "packed-sticky")
    for seed in (3, 4)
]
CONDITIONS: list[dict[str, Any]] = [
    {"rigid_share": 0.5, "strong_scaling_share": 0.25, "profiling": "oracle"},
    {"tuned": "any-pair", "tuned_gpus": 8, "failures": {"mtbf_hours": 3, "repair_seconds": 90}},
    {"jobs_per_gpu": 2, "interference": 1.5, "locality_penalty": 1.7},
    {"jobs_per_gpu": 2, "interference": "synthetic", "locality_penalty": {"resnet50": 1.25}},
    {"interference": "mea_1#v100", "variability": "mea_2", "variability_draw": "rows"},
    {"network_contention": 0.25, "rack_penalty": 1.5},
    {"locality_penalty": "measured"},
    {"locality_penalty": "our network"},
    {"least_stay_seconds": 600.0, "most_moves_per_hour": 4},
    {"measured_jobs": "3-6"},
    {
        "reservations": [
            {"gpu_type": "a100", "gpu_count": 1, "tenant": "x:y", "end_seconds": 5400.0},
            {"gpu_type": "a100", "gpu_count": 2, "job": "bert", "start_seconds": 100.0},
        ]
    },
]
UNSAID: list[dict[str, Any]] = [
    {"tuned_gpus": 8},
    {"interference": "the name of measurements"},
    {"round_seconds": 30, "profiling": "oracle", "quotas": []},
]


def simulation(**changed: Any) -> dict[str, Any]:
    given = {**SHARED, "traces": [TRACE, {**TRACE, "seed": 8}], "runs": RUNS, **changed}
    return SimulationBody.model_validate(given).model_dump(mode="json")


def sweep(**changed: Any) -> dict[str, Any]:
    trace = {name: value for name, value in TRACE.items() if name != "seed"}
    vary = [
        {"name": "p", "values": [-1.0, 0.5]},
        {"name": "idle_penalty", "values": [1.1, 2.0]},
    ]
    given = {**SHARED, "trace": trace, "policy": "las", "placer": "pal", "vary": vary, **changed}
    return SweepBody.model_validate({"seeds": [0, 2], **given}).model_dump(mode="json")


def form_at(page: Any, address: str) -> dict[str, Any]:
    """What the form of this address holds."""
    path, _, query = address.partition("?")
    assert path == f"/{page.ADDRESS.prefix}"
    asked: Any = {
        name: values if len(values) > 1 else values[0] for name, values in parse_qs(query).items()
    }
    opened = page.layout(**asked)
    held, prefix = page.ADDRESS.values_of(opened), page.ADDRESS.prefix
    written = opened[f"{prefix}-parameters-written"].data
    ids = [{"of": owner, "name": name} for owner, given in written.items() for name in given]
    values = [typed(text) for given in written.values() for text in given.values()]
    return {
        **held,
        "cluster": held["gpus"],
        "live": "",
        "reservations": opened[f"{prefix}-reservations"].data,
        "parameters": {"ids": ids, "values": values},
    }


def typed(text: str) -> str | float:
    return float(text) if text[-1].isdigit() else text


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"traces": [TRACE]},
        {"runs": [{"policy": "sia"}]},
        {"runs": [{"policy": "sia"}, {"policy": "fifo"}], "fidelity": "paper"},
        {
            "runs": [
                {
                    "policy": policy,
                    "policy_parameters": {"p": -1.0, "fast": True} if policy == "sia" else {},
                    "round_seconds": 30 if policy == "sia" else None,
                    "placer": "pal",
                    "placer_parameters": {"threshold": 0.5, "rule": "one"},
                    "seed": seed,
                }
                for policy in ("sia", "fifo")
                for seed in (0, 1)
            ]
        },
        {
            "runs": [
                {"policy": policy, "tuned": rule, "seed": seed}
                for policy, rule in (("gavel", "any-pair"), ("sia", None))
                for seed in (0, 1)
            ],
            "tuned_gpus": 8,
        },
        *CONDITIONS,
    ],
)
def test_the_form_asks_for_the_same_simulation(changed: dict[str, Any]) -> None:
    request = simulation(**changed)
    address = simulation_again(request)

    assert address is not None
    body = simulate.body_of(form_at(simulate, address), texts=None, cluster_id=None)
    assert SimulationBody.model_validate(body).model_dump(mode="json") == request


def test_a_replay_leads_to_the_form_that_replays_as_many_hours_by_the_same_policies() -> None:
    trace = {"kind": "cluster", "cluster_id": "clu_1", "since_seconds_ago": 86_400.0}
    request = {"traces": [trace], "runs": RUNS}

    address = simulation_again(request)

    assert address is not None
    policies = list(dict.fromkeys(run["policy"] for run in RUNS))
    asked = parse_qs(urlsplit(address).query)
    assert asked == {"replay": ["24"], "policies": policies, "cluster": ["clu_1"]}
    assert simulation_again({**request, "traces": [{**trace, "until_seconds_ago": 60.0}]}) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"traces": [{"kind": "csv", "text": "name\n"}]},
        {"traces": [TRACE, {**TRACE, "seed": 9}]},
        {"runs": RUNS[:3]},
        {"runs": [{"policy": "sia"}, {"policy": "sia", "placer": "pal"}]},
        {"runs": [{"policy": "sia", "policy_parameters": {"p": None}}]},
        {"runs": [{"policy": "sia", "placer_parameters": {"threshold": 0.5}}]},
        {"runs": [{**RUNS[0], "seed": 0, "round_seconds": 30}, {**RUNS[0], "seed": 1}]},
        {"runs": [{**RUNS[0], "seed": 0, "tuned": "any-pair"}, {**RUNS[0], "seed": 1}]},
        {"round_seconds": 30},
        *UNSAID,
    ],
)
def test_of_a_simulation_that_no_address_can_say_there_is_none(changed: dict[str, Any]) -> None:
    assert simulation_again(simulation(**changed)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"placer": None, "policy": "sia"},
        {"vary": [{"name": "policy", "values": ["sia", "fifo"]}], "policy": "sia"},
        {"vary": [{"name": "jobs_per_hour", "values": [10.0, 20.5]}]},
        {"tuned_by_policy": {"las": "any-pair"}, "tuned_gpus": 8},
        {"policy_parameters": {"p": -1.0}, "round_seconds": 30.0, "placer_parameters": {"x": "y"}},
        *CONDITIONS,
    ],
)
def test_the_form_asks_for_the_same_sweep(changed: dict[str, Any]) -> None:
    request = sweep(**changed)
    address = sweep_again(request)

    assert address is not None
    body = sweeps.body_of(form_at(sweeps, address), texts=None, cluster_id=None)
    again = SweepBody.model_validate(body).model_dump(mode="json")
    if changed.get("vary", [{}])[0].get("name") == "jobs_per_hour":
        again["trace"]["jobs"] = request["trace"]["jobs"]  # nothing depends on it
    assert again == request


@pytest.mark.parametrize(
    "changed",
    [
        {"trace": {"kind": "csv", "text": "name\n"}},
        {"vary": [{"name": "policy", "values": ["sia"]}], "policy_parameters": {"p": -1.0}},
        *UNSAID,
    ],
)
def test_of_a_sweep_that_no_address_can_say_there_is_none(changed: dict[str, Any]) -> None:
    assert sweep_again(sweep(**changed)) is None
