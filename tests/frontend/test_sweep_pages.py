"""Tests of a sweep's figure, table and form: what they show and send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sweep_samples import axis, row, sweep

from frontend.components import conditions
from frontend.components.fairness_rule import RULES
from frontend.components.operations import progress
from frontend.figures.sweep import METRICS, sweep_figure
from frontend.figures.sweep_words import verdict
from frontend.pages.sweep import caption, captions, request_facts, table
from frontend.pages.sweeps import body_of, parse_values, place, unfinished
from frontend.pages.sweeps_varied import EXAMPLES
from maat.api.sweeps import RowOut
from maat.client.errors import FieldProblem
from maat.figures.theme import DARK, LIGHT
from maat.laboratory.axes import AXES
from maat.vocabulary import FairnessRule

FORM: dict[str, Any] = {
    "name": "s",
    "kind": "generated",
    "uploaded": None,
    "family": "philly",
    "jobs": 20,
    "hours": 1,
    "cluster": "t4=1x4",
    "policy": "sia",
    "placer": None,
    "fidelity": "paper",
    "vary1": "p",
    "values1": "-1, 0.5",
    "vary2": "nothing",
    "values2": "",
    "seeds": "0, 1",
    **conditions.USUAL,
    "parameters": {"ids": [], "values": []},
    "reserve": {"type": "", "holder": ""},
    "reservations": [],
}


def text_of(component: Any) -> str:
    return json.dumps(component.to_plotly_json(), default=lambda part: part.to_plotly_json())


def test_measurements_that_were_deleted_since_are_said_to_be() -> None:
    request = {
        "trace": {"kind": "csv"},
        "cluster": "t4=1x4",
        "policy": "fifo",
        "fidelity": "paper",
        "variability": "m1",
        "jobs_per_gpu": 2,
    }
    used = [
        {"kind": "variability", "name": "TACC", "gpu_type": None, "deleted": True},
        {"kind": "interference", "name": "pairs", "gpu_type": None, "deleted": False},
    ]
    told = text_of(
        request_facts(
            {"seeds": [0], "request": {**request, "interference": "m2"}, "measurements": used}
        )
    )

    assert "unequal as TACC (deleted) measured" in told
    assert "interference pairs" in told
    assert told.count("(deleted)") == 1


def test_each_value_of_the_second_axis_is_a_line_over_the_values_of_the_first_with_its_spread() -> (
    None
):
    drawn = sweep_figure(sweep(), "avg_jct_hours", scheme="light")
    assert [
        (line.name, list(line.x), list(line.y), list(line.error_y.array)) for line in drawn.data
    ] == [
        ("round_seconds = 60", [-1, 0.5], [1.0, 1.5], [0.5, 0.5]),
        ("round_seconds = 300", [-1], [2.0], [0.5]),
    ]
    assert all(line.error_y.visible for line in drawn.data)
    assert drawn.layout.showlegend


def test_lines_differ_by_more_than_their_colour() -> None:
    drawn = sweep_figure(sweep(), "avg_jct_hours", scheme="light")
    assert (
        len({line.line.dash for line in drawn.data})
        == len({line.line.color for line in drawn.data})
        == 2
    )


def test_one_axis_is_one_line_and_one_seed_has_no_bars() -> None:
    alone = sweep(axes=[axis("p", [-1])], rows=[row(1.0, 0.0, seeds=(4,), p=-1)], seeds=[4])
    (line,) = sweep_figure(alone, "avg_jct_hours", scheme="light").data
    assert (line.name, line.error_y.visible) == ("Mean JCT", False)
    assert line.text[0] == "1, seed 4"
    assert "nothing is known of the spread" in caption(alone)


def test_axes_are_titled_with_their_units_and_ticks_stand_at_what_was_simulated() -> None:
    seconds = axis("round_seconds", [300, 60], title="Round duration", unit="s", logarithmic=True)
    drawn = sweep_figure(
        sweep(axes=[seconds], rows=[row(1.0, round_seconds=60)]), "avg_jct_hours", scheme="light"
    )
    assert (drawn.layout.xaxis.title.text, drawn.layout.yaxis.title.text) == (
        "Round duration (s)",
        "Mean JCT (hours)",
    )
    assert (drawn.layout.xaxis.type, drawn.layout.xaxis.tickvals, drawn.layout.xaxis.ticktext) == (
        "log",
        (60, 300),
        ("60", "300"),
    )


def test_policies_have_places_in_the_order_in_which_they_were_asked_for_and_names_are_no_markup() -> (  # noqa: E501
    None
):
    policies = axis("policy", ["sia", "<b>x</b>"], title="Policy")
    drawn = sweep_figure(
        sweep(axes=[policies], rows=[row(1.0, policy="<b>x</b>")]), "avg_jct_hours", scheme="light"
    )
    assert (drawn.layout.xaxis.type, drawn.layout.xaxis.categoryarray) == (
        "category",
        ("sia", "&lt;b&gt;x&lt;/b&gt;"),
    )
    assert drawn.data[0].x == ("&lt;b&gt;x&lt;/b&gt;",)


def test_shares_are_percentages_and_fairness_has_its_rule() -> None:
    assert sweep_figure(sweep(), "unfair_fraction", scheme="light").layout.yaxis.tickformat == ".0%"
    assert (
        sweep_figure(sweep(), "worst_rho", scheme="light").layout.annotations[0].text == "rho = 1"
    )


@pytest.mark.parametrize("rule", RULES)
def test_figures_of_fairness_are_told_with_the_name_of_their_rule(rule: str) -> None:
    shown = sweep(fairness_rule=rule)
    for metric in ("worst_rho", "unfair_fraction"):
        title = sweep_figure(shown, metric, scheme="light").layout.yaxis.title.text
        assert f"rho ({rule})" in title
        assert json.dumps(title) in text_of(table(shown))


def test_points_without_a_figure_are_told_from_points_that_have_not_ended() -> None:
    rows = sweep()["rows"]
    for shown in rows:
        shown["mean"].pop("worst_rho")
    drawn = sweep_figure(
        sweep(rows=rows, fairness_rule="share-of-type"), "worst_rho", scheme="light"
    )
    assert drawn.layout.meta["state"] == "empty"
    assert "earlier version" in drawn.layout.annotations[0].text.replace("<br>", " ")


@pytest.mark.parametrize("metric", METRICS)
def test_before_a_point_has_ended_the_figure_says_so(metric: str) -> None:
    drawn = sweep_figure(sweep(rows=[]), metric, scheme="dark")
    assert (drawn.layout.meta["state"], len(drawn.data)) == ("empty", 0)


def test_light_and_dark_differ_by_their_greys_only() -> None:
    light, dark = (
        sweep_figure(sweep(), "avg_jct_hours", scheme=scheme) for scheme in ("light", "dark")
    )
    assert (light.layout.template.layout.font.color, dark.layout.template.layout.font.color) == (
        LIGHT.text,
        DARK.text,
    )
    assert [line.line.color for line in light.data] == [line.line.color for line in dark.data]


def test_the_table_has_a_row_per_combination_with_mean_and_spread() -> None:
    shown = text_of(table(sweep()))
    assert shown.count('"Td"') == 3 * (2 + 1 + len(METRICS))
    assert "1.5 \\u00b1 0.5" in shown
    assert "No point has ended yet" in text_of(table(sweep(rows=[])))


def test_progress_stands_until_the_end_and_says_why_a_point_failed() -> None:
    operation = {
        "state": "running",
        "message": "Points: 6 succeeded.",
        "error": None,
        "done": 6.0,
        "total": 8.0,
        "unit": "points",
    }
    assert "6 of 8 points" in text_of(progress(operation, failed="A point failed"))
    assert progress({**operation, "state": "succeeded"}, failed="A point failed") is None
    failed = progress(
        {**operation, "state": "failed", "error": {"detail": "p is out of range"}},
        failed="A point failed",
    )
    assert "p is out of range" in text_of(failed)
    assert "A point failed" in text_of(failed)


def test_the_form_offers_every_setting_that_can_be_varied() -> None:
    assert set(EXAMPLES) == set(AXES)


def test_the_form_is_sent_as_the_api_wants_it() -> None:
    plain = body_of(FORM, texts=None, cluster_id=None)
    assert plain["vary"] == [{"name": "p", "values": [-1.0, 0.5]}]
    assert plain["trace"] == {"kind": "generated", "family": "philly", "jobs": 20, "hours": 1}
    both = body_of(
        {**FORM, "vary2": "policy", "values2": "sia, fifo", "kind": "cluster"},
        texts=None,
        cluster_id="c1",
    )
    assert both["vary"][1] == {"name": "policy", "values": ["sia", "fifo"]}
    assert (both["trace"], both["seeds"]) == ({"kind": "cluster", "cluster_id": "c1"}, [0, 1])
    bound = body_of(
        {**FORM, "kind": "csv", "strong_scaling_share": 0.5}, texts=["a,b\n"], cluster_id=None
    )
    assert (bound["trace"], bound["strong_scaling_share"]) == (
        {"kind": "csv", "text": "a,b\n"},
        0.5,
    )
    tuned = body_of({**FORM, "tuned_by_policy": "gavel=any-pair"}, texts=None, cluster_id=None)
    assert (tuned["tuned_by_policy"], "tuned" in tuned) == ({"gavel": "any-pair"}, False)
    assert parse_values(" 1,, oracle ") == [1.0, "oracle"]


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/vary/1/values", "values2"),
        ("/vary", "values1"),
        ("/tuned_by_policy/gavel", "tuned_by_policy"),
        ("/strong_scaling_share", "strong_scaling_share"),
        ("/x", None),
    ],
)
def test_a_refused_field_has_its_place_in_the_form(pointer: str, field: str | None) -> None:
    assert place(FieldProblem(pointer, "", ""), {"policy": "sia"}) == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"values1": " , "}, "values1"),
        ({"vary2": "policy", "values2": ""}, "values2"),
        ({"vary2": "p", "values2": "1"}, "vary2"),
        ({"seeds": "one"}, "seeds"),
        ({"kind": "cluster"}, "cluster"),
        ({"kind": "csv"}, "csv"),
        ({"kind": "uploaded"}, "uploaded"),
    ],
    ids=str,
)
def test_what_the_form_can_see_itself_is_said_beside_the_field(
    change: dict[str, Any], field: str
) -> None:
    assert set(unfinished({**FORM, **change}, [], None)) == {field}
    assert unfinished(FORM, [], None) == {}


def test_a_placer_and_its_parameters_are_sent_beside_the_policys_and_told_on_the_page() -> None:
    fields = {
        ("policy:sia", "p"): -1,
        ("placer:pal", "binning"): "two",
        ("placer:pm-first", "binning"): "one",
    }
    given = {
        "ids": [{"of": of, "name": name} for of, name in fields],
        "values": list(fields.values()),
    }
    form = {**FORM, "placer": "pal", "parameters": given, "vary1": "round_seconds", "values1": "60"}

    body = body_of(form, texts=None, cluster_id=None)
    varied = body_of({**form, "vary2": "policy", "values2": "fifo"}, texts=None, cluster_id=None)

    assert (body["placer"], body["placer_parameters"], body["policy_parameters"]) == (
        "pal",
        {"binning": "two"},
        {"p": -1},
    )
    assert (varied["placer"], varied["placer_parameters"]) == ("pal", {"binning": "two"})
    assert not {"policy", "policy_parameters"} & set(varied)
    assert not {"placer", "placer_parameters"} & set(body_of(FORM, texts=None, cluster_id=None))
    assert place(FieldProblem("/placer_parameters/binning", "", ""), body) == "placer:pal/binning"
    assert place(FieldProblem("/placer", "", ""), body) == "placer"
    shown = text_of(request_facts(sweep(request={**sweep()["request"], **body})))
    assert all(
        words in shown
        for words in (
            '"pal"',
            "Parameters of the placer",
            "binning two",
            "Parameters of the policy",
            "p -1",
        )
    )
    assert "the one that suits the policy" in text_of(request_facts(sweep()))


def test_a_sweep_begins_with_where_its_figure_is_lowest_and_how_sure_that_is() -> None:
    assert verdict(sweep(), "avg_jct_hours") == (
        "So far: Mean JCT is lowest, 1 h, with Fairness power p -1, Round duration 60 s: "
        "50 % less than the highest, Fairness power p -1, Round duration 300 s. "
        "Not certain: the spread over 2 seeds is as large."
    )
    whole = sweep(done=8)
    assert verdict(whole, "avg_jct_hours").startswith("Mean JCT is lowest")
    assert verdict(whole, "worst_rho") == "Worst rho is 1.5 whatever the setting."
    assert verdict(whole, "makespan_hours") == ""
    sure = sweep(
        rows=[row(1.0, 0.1, p=-1, round_seconds=60), row(2.0, 0.1, p=-1, round_seconds=300)]
    )
    assert verdict(sure, "avg_jct_hours").endswith("is larger than the spread over 2 seeds.")
    one = [
        row(1.0, seeds=(0,), p=-1, round_seconds=60),
        row(2.0, seeds=(0,), p=1, round_seconds=60),
    ]
    assert verdict(sweep(rows=one), "avg_jct_hours").endswith("Not certain on one seed.")
    assert verdict(sweep(rows=one[:1]), "avg_jct_hours") == ""


def test_settings_under_which_jobs_cannot_run_are_named_and_not_called_the_lowest() -> None:
    def with_stuck(hours: float, stuck: int, **settings: float) -> RowOut:
        found = row(hours, 0.1, **settings)
        return {**found, "mean": {**found["mean"], "jobs": 30, "cannot_run": stuck}}

    some = [
        with_stuck(1.0, 14, p=-1, round_seconds=60),
        with_stuck(3.0, 0, p=-1, round_seconds=300),
        with_stuck(2.0, 0, p=1, round_seconds=60),
    ]
    found = verdict(sweep(rows=some), "avg_jct_hours")
    assert found.startswith(
        "14 of 30 jobs cannot run with Fairness power p -1, Round duration 60 s. "
        "So far: Mean JCT is lowest, 2 h"
    )
    every = [with_stuck(1.0, 2, p=-1, round_seconds=60), with_stuck(3.0, 2, p=1, round_seconds=60)]
    assert "2 of 30 jobs cannot run whatever the setting." in verdict(
        sweep(rows=every), "avg_jct_hours"
    )


def test_what_is_noted_of_a_sweep_stands_below_its_figure_one_line_each() -> None:
    idle = "No job of the trace can run on p100: its 8 GPUs stay idle."
    first, *noted = captions(sweep(notes=[idle, "Other."]), FairnessRule.MEAN_OF_RATIOS)
    assert caption(sweep()) in first.children
    assert [line.children for line in noted] == [idle, "Other."]


def test_a_value_in_words_has_no_unit_in_the_verdict() -> None:
    stay = axis("least_stay_seconds", ["none", 600], title="Least stay of a job", unit="s")
    rows = [row(1.0, least_stay_seconds="none"), row(2.0, least_stay_seconds=600)]
    said = verdict(sweep(axes=[stay], rows=rows), "avg_jct_hours")
    assert "with Least stay of a job none: 50 %" in said
    assert "the highest, Least stay of a job 600 s." in said
