"""Tests of addresses of the forms of the laboratory: what they fill and refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frontend.addresses import not_understood
from frontend.components import replay
from frontend.pages import sweeps
from frontend.pages.simulate import ADDRESS, layout

GIVEN = {
    "name": "night",
    "kind": "generated",
    "family": "helios",
    "import-format": "philly",
    "import-rule": "size-class",
    "jobs": "12",
    "hours": "0.5",
    "seed": "7",
    "gpus": "a100=1x4",
    "draws": "3",
    "window": "1.5",
    "policies": ["las", "sia"],
    "placers": "pal",
    "seeds": "0, 1",
    "fidelity": "sia-artifact",
}


def test_the_values_of_an_address_stand_in_the_form() -> None:
    page = layout(**GIVEN)

    assert set(GIVEN) == set(ADDRESS.names)
    assert ADDRESS.values_of(page) == {
        **GIVEN,
        "jobs": 12,
        "hours": 0.5,
        "seed": 7,
        "draws": 3,
        "window": 1.5,
        "placers": ["pal"],
    }
    assert not_understood(ADDRESS.takes, GIVEN) == []
    assert {"las", "sia"} <= set(page["simulate-policies"].data)


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
        ("seed", "-1"),
        ("draws", "13"),
        ("draws", "1.5"),
        ("window", "-2"),
        ("window", "long"),
        ("seeds", "0, 0"),
        ("seeds", "a"),
        ("name", "n" * 1001),
        ("empty", "nope"),
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
    "family": "helios",
    "import-format": "philly",
    "import-rule": "size-class",
    "jobs": "12",
    "hours": "0.5",
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
}


def test_the_values_of_an_address_stand_in_the_form_of_sweeps() -> None:
    page = sweeps.layout(**SWEEP)

    assert set(SWEEP) == set(sweeps.ADDRESS.names)
    assert sweeps.ADDRESS.values_of(page) == {**SWEEP, "jobs": 12, "hours": 0.5, "window": 1.5}
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
