"""Tests of the simulate form's address: what it fills, what it refuses, what a replay leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frontend.addresses import not_understood
from frontend.components import replay
from frontend.pages.simulate import layout
from frontend.pages.simulate.address import FIELDS, TAKES, asked_of, values_of

GIVEN = {
    "name": "night",
    "kind": "generated",
    "family": "helios",
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

    assert set(GIVEN) == set(FIELDS)
    assert values_of(page) == {
        **GIVEN,
        "jobs": 12,
        "hours": 0.5,
        "seed": 7,
        "draws": 3,
        "window": 1.5,
        "placers": ["pal"],
    }
    assert not_understood(TAKES, GIVEN) == []
    assert {"las", "sia"} <= set(page["simulate-policies"].data)


def test_what_counts_as_untouched_is_what_the_form_opens_with() -> None:
    opened = layout()

    assert layout(**GIVEN)["simulate-usual"].data == opened["simulate-usual"].data
    assert opened["simulate-usual"].data == values_of(opened)


def test_the_cluster_of_an_address_is_the_one_that_is_shown() -> None:
    assert values_of(layout(cluster="cl_1")) == values_of(layout())


def test_fields_that_were_emptied_open_empty() -> None:
    page = layout(empty=["name", "policies", "hours"])

    held = values_of(page)
    assert (held["name"], held["policies"], held["hours"]) == ("", [], "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "nope"),
        ("family", "nope"),
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
    [sentence] = not_understood(TAKES, query)

    assert value[:20] in sentence
    assert asked_of(query) == {}
    assert values_of(layout(**query)) == values_of(layout())


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
