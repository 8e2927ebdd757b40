"""The pages of experiments: what the forms send and refuse, what figures and tables show."""

from __future__ import annotations

import csv
import io
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from frontend.components.again import experiment_again
from frontend.figures.experiments import (
    cost_figure,
    efficiency_figure,
    nodes_figure,
    scores_figure,
    trials_figure,
)
from frontend.pages.experiment.tables import (
    best_table,
    runs_csv,
    runs_table,
    searches_table,
    trials_csv,
    verdict,
)
from frontend.pages.experiments.forms import FORMS, sizes_of
from frontend.pages.experiments.layout import layout
from maat.api.experiments import (
    AutoscalingBody,
    AutoscalingOut,
    RentedOut,
    SearchOut,
    TrialOut,
    TuningBody,
)
from maat.client.errors import FieldProblem

SCALING, TUNING = FORMS["autoscaling"], FORMS["tuning"]


def field_values(kind: str, **changes: Any) -> dict[str, Any]:
    """What the form holds as it opens, with changes."""
    form = layout(kind=kind)[f"experiments-{kind}"]
    return {name: form[f"{kind}-{name}"].value for name in FORMS[kind].fields} | changes


def rented(run: str, *, nodes: int | None = None, **changes: Any) -> RentedOut:
    found: dict[str, Any] = {
        "run": run,
        "title": f"by {run}" if nodes is None else f"{nodes} nodes",
        "nodes": nodes,
        "seconds": 7200.0,
        "node_seconds": 14400.0,
        "avg_jct_seconds": 7200.0,
        "efficiency": 0.5,
        "restarts": 1,
        "unfinished": 0,
        "rented": [[0.0, 1.0], [3600.0, 3.0]],
        "efficiencies": [[0.0, 0.8], [1800.0, None], [3600.0, 0.6]],
        **changes,
    }
    return cast(RentedOut, found)


def searched(run: str, ends: list[tuple[float, float]], **changes: Any) -> SearchOut:
    trials = [
        TrialOut(
            name=f"trial-{number}",
            submit_seconds=0.0,
            end_seconds=end,
            score=score,
            settings={"learning_rate": 0.1, "width": 1.5},
        )
        for number, (end, score) in enumerate(ends)
    ]
    found: dict[str, Any] = {
        "run": run,
        "title": f"{run} trials",
        "policy": "pollux",
        "placer": "as-decided",
        "top_score": 95.0,
        "avg_jct_seconds": 600.0,
        "makespan_seconds": max(end for end, _ in ends),
        "trials": trials,
        **changes,
    }
    return cast(SearchOut, found)


def autoscaling(*runs: RentedOut) -> AutoscalingOut:
    return cast(AutoscalingOut, {"kind": "autoscaling", "runs": list(runs)})


# ---- forms


@pytest.mark.parametrize(("form", "kind"), [(SCALING, "autoscaling"), (TUNING, "tuning")])
def test_a_form_as_it_opens_is_whole_and_the_schema_takes_it(form: Any, kind: str) -> None:
    values = field_values(kind)
    assert form.unfinished(values) == {}
    sent = form.body_type.model_validate(form.body(values))
    assert sent.name


def test_the_defaults_of_the_forms_are_the_papers() -> None:
    sent = AutoscalingBody.model_validate(SCALING.body(field_values("autoscaling")))
    assert (sent.model, sent.cluster, sent.fixed_nodes, sent.lower) == (
        "imagenet",
        "t4=16x4",
        None,
        0.5,
    )
    assert sent.upper == pytest.approx(2 / 3, abs=0.001)
    search = TuningBody.model_validate(TUNING.body(field_values("tuning")))
    assert (search.trials, search.at_a_time, search.static_gpus) == (100, 4, 4)
    assert search.static_batch_per_gpu is None


def test_a_generated_workload_and_an_uploaded_trace_are_sent_with_their_policy() -> None:
    drawn = SCALING.body(field_values("autoscaling", trained="generated", jobs=5, hours=1, seed=3))
    assert drawn["trace"] == {
        "kind": "generated",
        "family": "philly",
        "jobs": 5,
        "hours": 1,
        "xxl_share": 0,
        "seed": 3,
    }
    assert "model" not in drawn
    sent = SCALING.body(
        field_values("autoscaling", trained="uploaded", uploaded="mine", policy="sia")
    )
    assert (sent["trace"], sent["policy"]) == ({"kind": "uploaded", "measurement": "mine"}, "sia")


@pytest.mark.parametrize(
    ("kind", "changes", "field"),
    [
        ("autoscaling", {"upper": 1.5}, "upper"),
        ("autoscaling", {"window": ""}, "window"),
        ("autoscaling", {"fixed_nodes": "1, two"}, "fixed_nodes"),
        ("autoscaling", {"fixed_nodes": "0"}, "fixed_nodes"),
        ("autoscaling", {"cluster": ""}, "cluster"),
        ("autoscaling", {"trained": "uploaded"}, "uploaded"),
        ("autoscaling", {"trained": "generated", "jobs": ""}, "jobs"),
        ("tuning", {"trials": 0}, "trials"),
        ("tuning", {"work_scale": "much"}, "work_scale"),
        ("tuning", {"static_gpus": 1.5}, "static_gpus"),
    ],
)
def test_the_form_itself_sees_what_cannot_be(
    kind: str, changes: dict[str, Any], field: str
) -> None:
    assert list(FORMS[kind].unfinished(field_values(kind, **changes))) == [field]


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/name", "name"),
        ("/cluster", "cluster"),
        ("/fixed_nodes/1", "fixed_nodes"),
        ("/trace/jobs", "jobs"),
        ("/trace/measurement", "uploaded"),
        ("/trace", "uploaded"),
        ("/unfinished", None),
    ],
)
def test_a_refusal_stands_beside_its_field(pointer: str, field: str | None) -> None:
    problem = FieldProblem(pointer, pointer.rpartition("/")[2], "No.")
    assert SCALING.place(problem) == field


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("", []), ("4", [4]), ("1, 2 4", [1, 2, 4]), ("1;2", None), ("-1", None), ("1.5", None)],
)
def test_numbers_of_nodes_are_read_with_commas_between(text: str, sizes: list[int] | None) -> None:
    assert sizes_of(text) == sizes


def test_what_was_asked_for_is_asked_again_by_an_address() -> None:
    body = AutoscalingBody(
        name="again",
        trace={"kind": "generated", "jobs": 4, "hours": 2.0, "seed": 7},  # type: ignore[arg-type]
        cluster="t4=8x4",
        window=15,
        fixed_nodes=[2, 4],
    )
    address = experiment_again("autoscaling", body.model_dump(mode="json"))
    assert address is not None
    query: Any = parse_qs(urlsplit(address).query)
    kind = "autoscaling"
    form = layout(**query)[f"experiments-{kind}"]
    values = {name: form[f"{kind}-{name}"].value for name in SCALING.fields}
    assert AutoscalingBody.model_validate(SCALING.body(values)) == body
    search = TuningBody(name="again", trials=7, work_scale=4.0, profiles="mine")
    query = parse_qs(urlsplit(experiment_again("tuning", search.model_dump(mode="json"))).query)
    form = layout(**query)["experiments-tuning"]
    values = {name: form[f"tuning-{name}"].value for name in TUNING.fields}
    assert TuningBody.model_validate(TUNING.body(values)) == search


def test_what_no_address_can_say_is_not_asked_again() -> None:
    told = {"cluster": "t4=4x4", "name": "x", "seed": 0, "trace": {"kind": "csv", "text_bytes": 9}}
    assert experiment_again("autoscaling", told) is None


# ---- figures and tables


def test_nodes_hold_until_the_next_change_and_the_last_to_the_end() -> None:
    drawn = nodes_figure([rented("goodput"), rented("fixed-4", nodes=4)], scheme="light")
    (line,) = drawn.data
    assert line.name == "by goodput"
    assert (list(line.x), list(line.y)) == ([0.0, 1.0, 2.0], [1.0, 3.0, 3.0])
    assert line.line.shape == "hv"
    assert drawn.layout.yaxis.title.text == "Nodes rented"


def test_efficiency_has_a_gap_where_nothing_trains() -> None:
    (line,) = efficiency_figure([rented("goodput")], scheme="dark").data
    assert list(line.y) == [0.8, None, 0.6, 0.6]
    assert line.connectgaps is False


def test_cost_stands_against_time_with_the_fixed_sizes_on_a_line() -> None:
    slow = rented("fixed-1", nodes=1, seconds=36000.0, node_seconds=36000.0)
    fast = rented("fixed-4", nodes=4, seconds=10800.0, node_seconds=43200.0)
    drawn = cost_figure([rented("goodput"), slow, fast], scheme="light")
    chosen, fixed = drawn.data
    assert (list(chosen.x), list(chosen.y)) == ([2.0], [4.0])
    assert (list(fixed.x), list(fixed.y)) == ([3.0, 10.0], [12.0, 10.0])


def test_trials_and_best_scores_step_as_trials_end() -> None:
    runs = [searched("elastic", [(7200.0, 94.0), (3600.0, 93.0), (10800.0, 92.0)])]
    (line,) = trials_figure(runs, scheme="light").data
    assert (list(line.x), list(line.y)) == ([0.0, 1.0, 2.0, 3.0], [0, 1, 2, 3])
    (best,) = scores_figure(runs, scheme="light").data
    assert (list(best.x), list(best.y)) == ([1.0, 2.0, 3.0], [93.0, 94.0, 94.0])


@pytest.mark.parametrize("draw", [nodes_figure, efficiency_figure, cost_figure])
def test_before_a_run_has_ended_a_figure_says_so(draw: Any) -> None:
    assert draw([], scheme="light").layout.annotations[0].text == "No run has ended."


def test_the_verdict_says_what_goodput_saves_and_whether_a_fixed_size_beats_it() -> None:
    ours = rented("goodput", node_seconds=7500.0, seconds=5000.0)
    theirs = rented("throughput", node_seconds=10000.0, seconds=4000.0)
    both = "Renting by goodput costs 25 % less and takes 25 % more time than by throughput."
    assert verdict(autoscaling(ours)) == ""
    assert verdict(autoscaling(ours, theirs)) == both
    dear = rented("fixed-4", nodes=4, node_seconds=9000.0, seconds=4500.0)
    assert verdict(autoscaling(ours, theirs, dear)).endswith("costs and takes less than goodput.")
    better = rented("fixed-2", nodes=2, node_seconds=7000.0, seconds=4500.0)
    told = verdict(autoscaling(ours, theirs, dear, better))
    assert told == f"{both} 2 nodes throughout cost and take no more than goodput."


def test_the_verdict_of_a_search_is_of_its_end() -> None:
    elastic = searched("elastic", [(3000.0, 95.0)], avg_jct_seconds=300.0)
    static = searched("static", [(4000.0, 95.0)], avg_jct_seconds=600.0)
    found: Any = {"kind": "tuning", "runs": [elastic, static]}
    assert verdict(found) == (
        "With elastic trials the search ends 25 % sooner; a trial takes 50 % less time on average."
    )


def test_a_search_that_takes_some_time_is_not_said_to_take_none() -> None:
    elastic = searched("elastic", [(10.0, 95.0)], avg_jct_seconds=300.0)
    static = searched("static", [(4000.0, 95.0)], avg_jct_seconds=600.0)
    found: Any = {"kind": "tuning", "runs": [elastic, static]}
    assert "the search ends over 99 % sooner" in verdict(found)


@pytest.mark.parametrize(
    ("trials", "heading"), [(1, "Best score (%)"), (3, "best 3 (%)"), (9, "best 5 (%)")]
)
def test_the_heading_of_scores_counts_the_trials_that_they_are_of(
    trials: int, heading: str
) -> None:
    run = searched("elastic", [(float(end), 95.0) for end in range(trials)])
    assert heading in str(searches_table([run]))


def test_a_run_that_left_jobs_unfinished_says_how_many() -> None:
    assert "Unfinished" not in str(runs_table([rented("goodput")]))
    assert "Unfinished" in str(runs_table([rented("goodput", unfinished=2)]))


def test_the_best_trials_of_both_searches_come_first() -> None:
    runs = [searched("elastic", [(1.0, 94.0)]), searched("static", [(1.0, 95.5), (2.0, 90.0)])]
    (_, body) = best_table(runs).children
    assert [row.children[2].children for row in body.children] == ["95.50", "94.00", "90.00"]


def test_tables_are_saved_unrounded_and_defused() -> None:
    hostile = searched("elastic", [(1.23456789, 95.123456)])
    hostile["trials"][0]["name"] = "=cmd"
    (row,) = csv.DictReader(io.StringIO(trials_csv([hostile])))
    assert (row["trial"], row["end_seconds"], row["momentum"]) == ("'=cmd", "1.23456789", "")
    (row,) = csv.DictReader(io.StringIO(runs_csv([rented("fixed-4", nodes=4)])))
    assert (row["run"], row["nodes"], row["node_seconds"]) == ("4 nodes", "4", "14400.0")
