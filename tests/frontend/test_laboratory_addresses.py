"""Tests of addresses of the forms of the laboratory: what they fill and refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frontend.addresses import not_understood
from frontend.components import replay
from frontend.components.parameter_fields import asked_parameters, in_address
from frontend.pages import sweeps
from frontend.pages.simulate import ADDRESS, layout

CONDITIONS = {
    "profiling": "oracle",
    "tuned": "any-pair",
    "tuned_gpus": "8",
    "tuned_by_policy": "las=best-batch",
    "measured_jobs": "3-6",
    "profiles": "uploaded:mea_3",
    "interference": "uploaded:mea_1#v100",
    "slowdown": "1.5",
    "variability": "uploaded:mea_2",
    "variability_draw": "rows",
    "locality_penalty": "resnet50=1.2, vgg19=3",
    "rigid_share": "0.5",
    "strong_scaling_share": "0.25",
    "jobs_per_gpu": "2",
    "rack_penalty": "1.5",
    "network_contention": "0.25",
    "mtbf_hours": "100",
    "repair_minutes": "7.5",
    "least_stay_seconds": "600",
    "most_moves_per_hour": "4",
}
HELD_CONDITIONS = {
    **CONDITIONS,
    "tuned_gpus": 8,
    "slowdown": 1.5,
    "rigid_share": 0.5,
    "strong_scaling_share": 0.25,
    "jobs_per_gpu": 2,
    "rack_penalty": 1.5,
    "network_contention": 0.25,
    "mtbf_hours": 100,
    "repair_minutes": 7.5,
    "least_stay_seconds": 600,
    "most_moves_per_hour": 4,
}
GIVEN = {
    "name": "night",
    "kind": "generated",
    "uploaded": "mea_4",
    "family": "helios",
    "import-format": "philly",
    "import-rule": "size-class",
    "jobs": "12",
    "hours": "0.5",
    "xxl_share": "0.25",
    "seed": "7",
    "gpus": "a100=1x4",
    "draws": "3",
    "window": "1.5",
    "policies": ["las", "sia"],
    "placers": "pal",
    "seeds": "0, 1",
    "fidelity": "sia-artifact",
    **CONDITIONS,
}


def test_the_values_of_an_address_stand_in_the_form() -> None:
    page = layout(**GIVEN)

    assert set(GIVEN) == set(ADDRESS.names)
    assert ADDRESS.values_of(page) == {
        **GIVEN,
        **HELD_CONDITIONS,
        "jobs": 12,
        "hours": 0.5,
        "xxl_share": 0.25,
        "seed": 7,
        "draws": 3,
        "window": 1.5,
        "placers": ["pal"],
    }
    assert not_understood(ADDRESS.takes, GIVEN) == []
    assert {"las", "sia"} <= set(page["simulate-policies"].data)
    assert page["simulate-variability"].data[-1] == "uploaded:mea_2"
    assert page["simulate-conditions"].open
    assert not layout()["simulate-conditions"].open


def test_reservations_of_an_address_are_in_the_form_and_in_its_list() -> None:
    asked: Any = {"reservation": ["4:a100:0:10:tenant:team: vision", "1:t4:1.5::job:bert"]}
    page = layout(**asked)

    assert not_understood(ADDRESS.takes, asked) == []
    assert page["simulate-reservations"].data == [
        {
            "gpu_type": "a100",
            "gpu_count": 4,
            "start_seconds": 0.0,
            "end_seconds": 36_000.0,
            "tenant": "team: vision",
        },
        {
            "gpu_type": "t4",
            "gpu_count": 1,
            "start_seconds": 5400.0,
            "end_seconds": None,
            "job": "bert",
        },
    ]
    assert "team: vision" in str(page["simulate-reservations-list"])
    assert page["simulate-conditions"].open


def described(*parameters: dict[str, Any]) -> Any:
    fields = {"minimum": None, "maximum": None, "unit": None, "help": "", "source": None}
    usual = {"default": None, "choices": None, **fields}
    return {
        "title": "Sia",
        "round_seconds": 60.0,
        "parameters": [{**usual, **each} for each in parameters],
    }


def test_parameters_of_an_address_stand_in_their_fields_and_others_are_told() -> None:
    asked: Any = {
        "policy_parameter": [
            "sia:p=-1",
            "sia:fast=yes",
            "sia:rule=one",
            "sia:round_seconds=30",
            "sia:nope=1",
            "sia:least=many",
        ],
        "placer_parameter": "pal:threshold=0.5",
    }
    page = layout(**asked)
    written = page["simulate-parameters-written"].data
    sia = described(
        {"name": "p", "type": "number"},
        {"name": "fast", "type": "boolean"},
        {"name": "rule", "type": "string", "choices": ["one", "two"]},
        {"name": "least", "type": "integer"},
    )
    pal = described({"name": "threshold", "type": "number"})
    held, lost = asked_parameters(written, [("policy:sia", sia), ("placer:pal", pal)])

    assert not_understood(ADDRESS.takes, asked) == []
    assert held == {
        "policy:sia": {"p": -1.0, "fast": True, "rule": "one", "round_seconds": 30.0},
        "placer:pal": {"threshold": 0.5},
    }
    assert [told.split("”")[0] for told in lost] == [
        "The address sets “nope=1",
        "The address sets “least=many",
    ]
    assert page["simulate-parameters-box"].open
    again = in_address(held)
    assert again["policy_parameter"][:2] == ["sia:p=-1", "sia:fast=yes"]


def test_what_counts_as_untouched_is_what_the_form_opens_with() -> None:
    opened = layout()

    assert layout(**GIVEN)["simulate-usual"].data == opened["simulate-usual"].data
    assert opened["simulate-usual"].data == ADDRESS.values_of(opened)


def test_the_cluster_of_an_address_is_the_one_that_is_shown() -> None:
    assert ADDRESS.values_of(layout(cluster="cl_1")) == ADDRESS.values_of(layout())


def test_fields_that_were_emptied_open_empty() -> None:
    page = layout(empty=["name", "policies", "hours"])

    held = ADDRESS.values_of(page)
    assert (held["name"], held["policies"], held["hours"]) == ("", [], "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "nope"),
        ("family", "nope"),
        ("import-format", "nope"),
        ("jobs", "0"),
        ("jobs", "1.5"),
        ("jobs", "many"),
        ("hours", "0"),
        ("hours", "nan"),
        ("xxl_share", "1.5"),
        ("seed", "-1"),
        ("draws", "13"),
        ("draws", "1.5"),
        ("window", "-2"),
        ("window", "long"),
        ("seeds", "0, 0"),
        ("seeds", "a"),
        ("name", "n" * 1001),
        ("empty", "nope"),
        ("profiling", "nope"),
        ("interference", "nope"),
        ("variability", "nope"),
        ("rigid_share", "2"),
        ("jobs_per_gpu", "1.5"),
        ("jobs_per_gpu", "many"),
        ("slowdown", "0.5"),
        ("mtbf_hours", "0"),
        ("repair_minutes", "-1"),
        ("locality_penalty", "x=y"),
        ("tuned_by_policy", "any-pair"),
        ("tuned_by_policy", "las=nope"),
        ("measured_jobs", "all"),
        ("network_contention", "1"),
        ("least_stay_seconds", "-1"),
        ("least_stay_seconds", "3e6"),
        ("most_moves_per_hour", "0"),
        ("most_moves_per_hour", "1.5"),
        ("reservation", "4 a100"),
        ("reservation", "4:a100:0:10:team:x"),
        ("reservation", "0:a100:0:10:tenant:x"),
        ("reservation", "many:a100:0:10:tenant:x"),
        ("reservation", "4:a100:0:10:tenant:"),
        ("policy_parameter", "sia"),
        ("placer_parameter", "pal:x="),
    ],
)
def test_what_the_form_cannot_take_is_named_and_left_out(name: str, value: str) -> None:
    query: Any = {name: value}
    [sentence] = not_understood(ADDRESS.takes, query)

    assert value[:20] in sentence
    assert ADDRESS.asked_of(query) == {}
    assert ADDRESS.values_of(layout(**query)) == ADDRESS.values_of(layout())


@pytest.mark.parametrize(
    ("cluster_id", "filled"),
    [("cl_1", {"gpus", "policies"}), ("cl_2", {"name", "gpus", "policies"})],
)
def test_a_replay_leaves_what_the_address_says_of_its_cluster(
    cluster_id: str, filled: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = layout(replay="24", cluster="cl_1", name="mine")["simulate-asked"].data
    live = {
        **dict.fromkeys(replay.OF_THE_LIVE_RUN),
        "id": cluster_id,
        "name": "demo",
        "policy": "fifo",
        "round_seconds": 60.0,
        "jobs_per_gpu": 1,
    }

    class Visitor:
        async def __aenter__(self) -> Visitor:
            return self

        async def __aexit__(self, *_: object) -> None:
            return None

        async def send(self, _call: object) -> Any:
            return live

    class Service:
        def visitor(self) -> Visitor:
            return Visitor()

    async def no_nodes(*_: object) -> list[Any]:
        return []

    monkeypatch.setattr(replay, "_nodes", no_nodes)

    service: Any = Service()
    changes = asyncio.run(replay.fill(service, hours=24, cluster_id=cluster_id, kept=kept))

    assert changes.keys() & {"name", "gpus", "policies"} == filled


SWEEP = {
    "name": "powers",
    "kind": "generated",
    "uploaded": "mea_4",
    "family": "helios",
    "import-format": "philly",
    "import-rule": "size-class",
    "jobs": "12",
    "hours": "0.5",
    "xxl_share": "0.25",
    "gpus": "a100=1x4",
    "window": "1.5",
    "policy": "las",
    "placer": "pal",
    "fidelity": "sia-artifact",
    "vary1": "idle_penalty",
    "values1": "1.1, 2",
    "vary2": "policy",
    "values2": "sia, fifo",
    "seeds": "0, 1",
    **CONDITIONS,
}


def test_the_values_of_an_address_stand_in_the_form_of_sweeps() -> None:
    page = sweeps.layout(**SWEEP)

    assert set(SWEEP) == set(sweeps.ADDRESS.names)
    assert sweeps.ADDRESS.values_of(page) == {
        **SWEEP,
        **HELD_CONDITIONS,
        "jobs": 12,
        "hours": 0.5,
        "xxl_share": 0.25,
        "window": 1.5,
    }
    assert not_understood(sweeps.ADDRESS.takes, SWEEP) == []
    assert not page["sweeps-values2"].disabled
    assert [one["value"] for one in page["sweeps-policy"].data[:1]] == ["sia"]
    assert page["sweeps-policy"].data[1:] == ["las"]
    assert page["sweeps-usual"].data == sweeps.ADDRESS.values_of(sweeps.layout())


def test_a_setting_without_values_opens_with_its_example() -> None:
    page = sweeps.layout(vary1="jobs_per_hour", vary2="idle_penalty")

    held = sweeps.ADDRESS.values_of(page)
    assert held["values1"] == sweeps.EXAMPLES["jobs_per_hour"]
    assert held["values2"] == sweeps.EXAMPLES["idle_penalty"]


@pytest.mark.parametrize(
    ("name", "value"), [("vary1", "nothing"), ("vary2", "nope"), ("jobs", "0"), ("seeds", "a")]
)
def test_what_the_form_of_sweeps_cannot_take_is_named_and_left_out(name: str, value: str) -> None:
    query: Any = {name: value}
    [sentence] = not_understood(sweeps.ADDRESS.takes, query)

    assert value in sentence
    assert sweeps.ADDRESS.values_of(sweeps.layout(**query)) == sweeps.ADDRESS.values_of(
        sweeps.layout()
    )
