"""Tests of the fairness rule on pages: its values in an address, and its name on figures."""

from __future__ import annotations

from typing import Any

import frontend_samples as samples
import pytest

from frontend.components.fairness_rule import MEANINGS, RULES, asked, meaning, selector
from frontend.figures.simulation import fairness_figure
from frontend.pages.simulation.tables import least_fair
from maat.vocabulary import FairnessRule


def drawn(rule: str) -> dict[str, Any]:
    return {
        name: {**run, "fairness_rule": rule}
        for name, run in samples.drawn({"sia": samples.result(0.0)}).items()
    }


def test_pages_offer_every_rule_of_the_library_and_say_what_each_compares() -> None:
    assert list(RULES) == list(MEANINGS) == [rule.value for rule in FairnessRule]
    assert len({meaning(rule) for rule in RULES}) == len(RULES)
    assert selector("any", "share-of-type").value == "share-of-type"


@pytest.mark.parametrize("said", [None, "", "n_g", ["mean-of-ratios", "share-of-type"]])
def test_an_address_that_names_no_rule_shows_the_mean_of_ratios(said: Any) -> None:
    assert asked(said) == "mean-of-ratios"


@pytest.mark.parametrize("rule", RULES)
def test_the_name_of_the_rule_stands_at_the_axis_and_over_the_column_of_rho(rule: str) -> None:
    assert (
        fairness_figure(drawn(rule), scheme="light").layout.xaxis.title.text
        == f"Finish-time fairness rho ({rule})"
    )
    heads = [cell.children for cell in least_fair(drawn(rule)).children[0].children.children]
    assert heads[1] == f"Worst rho ({rule})"


def test_a_rule_that_an_earlier_version_did_not_compute_is_said_to_be_missing() -> None:
    (run,) = drawn("share-of-type").values()
    run |= {
        "rho": {"points": [], "known": 0, "jobs": 40},
        "worst_rho": None,
        "unfair_fraction": None,
        "worst_off": [],
    }
    empty = fairness_figure({"sia": run}, scheme="light")
    told = empty.layout.annotations[0].text.replace("<br>", " ")
    assert "No rho (share-of-type)" in told
    assert "simulate again" in told


def test_a_job_of_a_clusters_history_that_fared_worst_leads_to_its_page() -> None:
    (run,) = drawn("share-of-type").values()
    live = f"job_{'0' * 26}"
    run |= {"worst_off": [{"name": live, "rho": 3.0}, {"name": "of a trace", "rho": 2.0}]}

    shown = str(least_fair({"sia": run}))

    assert f"href='/jobs/{live}'" in shown
    assert "of a trace" in shown
    assert shown.count("Link(") == 1
