"""Which placer goes with a policy: chosen, changed, and built with its parameters."""

from __future__ import annotations

import pytest

from maat.scheduling.errors import UnknownNameError
from maat.scheduling.parts import Parts
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.policies.las import Las

SIA = Parts.chosen("sia", policy_parameters={"p": -1.0}, placer_parameters={"spread": True})


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_policy_chosen_without_a_placer_and_one_changed_to_have_the_same(policy: str) -> None:
    other = Parts("sia" if policy != "sia" else "fifo", "random")

    assert Parts.chosen(policy) == other.changed(policy)
    assert Parts.chosen(policy).placer == suiting_placer(policy)


def test_what_is_named_stays_and_what_is_not_there_any_more_takes_its_parameters_along() -> None:
    assert SIA.changed() == SIA
    assert SIA.changed("sia") == SIA
    assert SIA.changed("fifo") == Parts("fifo", "packed-sticky")
    assert SIA.changed("fifo", "whole-node") == Parts("fifo", "whole-node", {}, {"spread": True})
    assert SIA.changed(placer="pal") == Parts("sia", "pal", {"p": -1.0}, {})
    assert SIA.changed(policy_parameters={}) == Parts("sia", "whole-node", {}, {"spread": True})
    assert SIA.changed("las", placer_parameters={"x": 1}) == Parts(
        "las", "packed-sticky", {}, {"x": 1}
    )


def test_a_policy_that_there_is_not_is_named() -> None:
    with pytest.raises(UnknownNameError, match="magic"):
        SIA.changed("magic")


def test_a_placer_that_marks_the_queue_has_its_policy_do_so_unless_that_says_otherwise() -> None:
    marked, placer = Parts("las", "pal").built()
    plain, _ = Parts("las", "packed").built()
    own, _ = Parts("las", "pal", {"head_of_line": "backfill"}).built()

    assert placer.name == "pal"
    assert isinstance(marked, Las)
    assert isinstance(own, Las)
    assert marked != plain
    assert own.head_of_line != marked.head_of_line
