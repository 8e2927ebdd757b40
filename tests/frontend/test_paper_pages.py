"""Tests of the pages of the papers: words, lists, tables and figures, from answers of the API."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest

from frontend.components.own_uploads import upload_fields, uploads_in
from frontend.components.reproduce import question_of
from frontend.figures.reproduced import has_panels, reproduced_figure
from frontend.pages.papers.items import data_note, last_result, sections, tiles
from frontend.pages.papers.made import made_table
from frontend.pages.papers.running import running
from frontend.pages.reproduced import item_in
from frontend.pages.reproduced_parts import MOST_BESIDE, not_made, own_lines, progress, table
from frontend.papers import (
    PAPER_NAMES,
    QUICK,
    WHOLE,
    agreement,
    cost_of,
    difference_words,
    item_names,
    minutes,
    signed_percent,
)
from maat.figures.base import figure, rule
from maat.figures.theme import DARK, LIGHT
from maat.papers.catalogue import PAPERS

NEVER = {"newest": None, "newest_made": None}
RUNNING = {
    "reproduction_id": "rpr_2",
    "quick": True,
    "state": "running",
    "done": 3,
    "total": 5,
    "finished_at": None,
    "measurements": [],
}
MADE = {
    **RUNNING,
    "reproduction_id": "rpr_1",
    "state": "succeeded",
    "done": 5,
    "finished_at": "2026-11-28T10:00:00Z",
}


def item(key: str = "fig-1", **changed: Any) -> Any:
    return {
        "key": key,
        "also": [],
        "title": "What it shows",
        "standing": "possible now",
        "because": None,
        "stands_in": [],
        "emulated": False,
        "quick_cpu_minutes": 0.5,
        "whole_cpu_minutes": None,
        "whole_runs": 40,
        "takes": ["variability"],
        **NEVER,
        **changed,
    }


LACKING = item("fig-3", standing="needs hardware", because="It needs <b>GPUs</b>.")


def papers(*items: Any, **changed: Any) -> Any:
    shown = [{"name": "pal", "title": "PAL: the title", "items": list(items)}]
    return {
        "papers": shown,
        "has_data": True,
        "data_problem": None,
        "most_whole_runs": 100,
        **changed,
    }


def row(difference: float | None, *, published: str | None = "1", **changed: Any) -> Any:
    return {
        "of": ["trace 1", "Sia"],
        "measure": "mean JCT (h)",
        "published": published,
        "ours": 1.0,
        "difference": difference,
        "spread": None,
        "runs": 1,
        **changed,
    }


def reproduction(*states: str, **changed: Any) -> Any:
    items = [
        {
            "key": f"fig-{place}",
            "title": "What it shows",
            "state": state,
            "done": 1,
            "total": 2,
            "finished_at": None,
            "failed": None,
        }
        for place, state in enumerate(states, start=1)
    ]
    return {
        "id": "rpr_1",
        "paper": "pal",
        "title": "PAL: the title",
        "quick": True,
        "operation_id": "op_1",
        "created_at": "2026-11-28T10:00:00Z",
        "state": "running",
        "done": 2,
        "total": 8,
        "measurements": [],
        "items": items,
        **changed,
    }


def test_every_paper_of_the_catalogue_has_a_name_on_the_page() -> None:
    assert set(PAPER_NAMES) == set(PAPERS)


def test_items_are_called_as_the_papers_call_them() -> None:
    assert item_names(item("fig-6", also=["fig-7"])) == "Figure 6, Figure 7"
    assert item_names(item("sec-5.7-two-counts")) == "Section 5.7-two-counts"
    assert item_names(item("table-3")) == "Table 3"


def test_costs_say_what_nobody_has_measured() -> None:
    some = [item(quick_cpu_minutes=3.4), item(quick_cpu_minutes=12.0)]
    assert cost_of(some, QUICK) == "about 15 CPU minutes"
    assert cost_of([item()], QUICK) == "less than a CPU minute"
    assert cost_of([*some, item(quick_cpu_minutes=None)], QUICK) == (
        "about 15 CPU minutes, 1 item not measured"
    )
    assert "nobody has measured it" in cost_of(some, WHOLE)
    assert [minutes(value) for value in (None, 0.01, 3.44)] == ["–", "< 0.1", "3.4"]


@pytest.mark.parametrize(
    ("differences", "says"),
    [
        ([], ""),
        ([0.05], "The one published value is met within 10 %: ours is off by +5 %."),
        ([0.0, -0.1], "All 2 published values are met within 10 %."),
        (
            [0.05, -0.34, 0.2],
            "1 of 3 published values are met within 10 %. "
            "Furthest: trace 1, Sia, mean JCT (h), −34 %.",
        ),
    ],
)
def test_the_verdict_counts_the_published_values_that_are_met(
    differences: list[float], says: str
) -> None:
    unpublished = row(None, published=None)
    assert agreement([*map(row, differences), unpublished]) == says


@pytest.mark.parametrize(
    ("ours", "words", "says"),
    [
        (0.0, "0 %", "All 2 published values are met within 10 %."),
        (
            1.0,
            "not 0",
            "1 of 2 published values are met within 10 %. Furthest: trace 1, Sia, mean JCT (h), "
            "not 0.",
        ),
        (None, "–", "The one published value is met within 10 %: ours is off by +5 %."),
    ],
)
def test_a_published_zero_is_met_by_zero_only(ours: float | None, words: str, says: str) -> None:
    zero = row(None, published="0", ours=ours)
    assert difference_words(zero) == words
    assert agreement([row(0.05), zero]) == says


def test_differences_have_a_sign_unless_they_are_none() -> None:
    assert [signed_percent(value) for value in (0.034, -0.5, 0.0, None)] == [
        "+3 %",
        "−50 %",
        "0 %",
        "–",
    ]


def test_only_what_can_be_made_has_buttons_and_what_cannot_says_why() -> None:
    listed = str(sections(papers(item(), LACKING), None, may_run=True))
    assert "Reproduce Figure 1 of PAL, quick" in listed
    assert "Reproduce Figure 1 of PAL, whole" in listed
    assert "Reproduce all of PAL, quick" in listed
    assert "Reproduce Figure 3 of PAL" not in listed
    assert "It needs <b>GPUs</b>." in listed


def test_a_viewer_sees_the_items_without_buttons_and_is_told_who_can_reproduce() -> None:
    shown = papers(item())
    assert "'data-press'" not in str(sections(shown, None, may_run=False))
    assert "What it shows" in str(sections(shown, None, may_run=False))
    assert "can reproduce" in str(data_note(shown, may_run=False))
    assert data_note(shown, may_run=True) == []


def test_without_published_data_the_page_says_what_stands_in() -> None:
    assert "MAAT_DATA" in str(data_note(papers(has_data=False), may_run=True))
    broken = papers(has_data=False, data_problem="The folder cannot be used.")
    assert "The folder cannot be used." in str(data_note(broken, may_run=True))


def test_a_service_that_makes_no_whole_ones_offers_none() -> None:
    assert ", whole" not in str(sections(papers(item(), most_whole_runs=0), None, may_run=True))


def test_a_whole_one_says_its_runs_and_cannot_be_pressed_where_it_would_be_refused() -> None:
    many = str(
        sections(papers(item(whole_runs=40), item("fig-2", whole_runs=70)), None, may_run=True)
    )
    assert "whole: 110 runs, above the limit of 100" in many, "of both together"
    assert many.count("disabled=True") == 1
    assert "Reproduce all of PAL, whole: 110 runs, above the limit of 100" in many
    assert "whole: 70 runs" in many
    few = str(sections(papers(item(whole_runs=100)), None, may_run=True))
    assert "disabled=True" not in few
    alone = str(sections(papers(item(whole_runs=101)), None, may_run=True))
    assert "Reproduce Figure 1 of PAL, whole: 101 runs, above the limit of 100" in alone
    assert alone.count("disabled=True") == 2


LAB: Any = [{"kind": "variability", "name": "lab", "gpu_type": None}]


def test_what_is_made_of_uploads_is_told_apart() -> None:
    of_lab = {**MADE, "reproduction_id": "rpr_9", "measurements": LAB}
    listed = item(newest=of_lab)
    assert "quick of lab, 28 Nov 10:00:00" in str(last_result(listed))
    made = reproduction("succeeded", measurements=LAB)
    left_out = "1 of 3 records of the trace was left out."
    told = str(own_lines("pal", listed, made, [left_out]))
    assert "This is of lab, not of published data." in told
    assert left_out in told
    told = str(own_lines("pal", listed, reproduction("succeeded")))
    assert "not of published data" not in told
    assert "/papers/pal/fig-1?reproduction=rpr_9" in told
    assert own_lines("pal", item(newest=MADE), None) == []
    assert "quick of lab" in str(made_table([made]))
    assert "PAL, quick of lab" in str(running([made], cancelling=(), may_run=True))


def test_chosen_uploads_go_with_a_press_and_with_the_way_to_an_item() -> None:
    chosen = {"variability": "lab"}
    listed = str(sections(papers(item()), None, may_run=True, own=chosen))
    assert "/papers/pal/fig-1?variability=lab" in listed
    assert "variability" in listed.split("data-what")[1]
    fields = str(upload_fields({"variability": "lab", "trace": None}))
    assert "value='lab'" in fields
    assert uploads_in({"variability": "lab", "trace": None, "profiles": ""}) == chosen


def test_an_item_that_is_being_made_shows_how_far_it_is_and_offers_no_second_start() -> None:
    live = item(newest=RUNNING, newest_made=MADE)
    told = str(last_result(live))
    assert "3 of 5 runs" in told
    assert "made quick, 28 Nov 10:00:00" in told
    assert "Reproduce Figure 1" not in str(sections(papers(live), None, may_run=True))
    assert "not made yet" in str(last_result(item()))
    failed = {**MADE, "state": "failed"}
    assert "failed, quick, 28 Nov 10:00:00" in str(last_result(item(newest=failed)))


def test_tiles_count_what_can_be_and_was_made_and_lead_to_one_paper_and_back() -> None:
    shown = papers(item(newest_made=MADE), item("fig-2"), LACKING)["papers"]
    (one,) = tiles(shown, None)
    assert "2 of 3" in str(one)
    assert "1 made so far" in str(one)
    assert (one.href, tiles(shown, "pal")[0].href) == ("/papers?paper=pal", "/papers")


def test_what_runs_is_told_item_by_item_and_can_be_cancelled() -> None:
    live = reproduction("succeeded", "running", "queued")
    (card,) = running([live], cancelling=(), may_run=True)
    told = str(card)
    assert "PAL, quick: 1 of 3 items ended" in told
    assert "2 of 8 runs" in told
    assert "href='/papers/pal/fig-1?reproduction=rpr_1'" in told
    assert "/papers/pal/fig-2" not in told
    assert "op_1" in told
    (asked,) = running([live], cancelling={"op_1"}, may_run=True)
    assert "cancelling" in str(asked)
    assert "papers-cancelled" not in str(asked)


def test_reports_are_offered_of_reproductions_that_made_something() -> None:
    made = reproduction("succeeded", "failed", state="failed")
    none = reproduction("cancelled", state="cancelled")
    assert "/api/v1/reproductions/rpr_1/report/html" in str(made_table([made]))
    assert "1 of 2 made" in str(made_table([made]))
    assert "/report/" not in str(made_table([none]))
    assert "No reproduction has ended yet" in str(made_table([]))


def test_only_whole_reproductions_are_asked_about_first() -> None:
    press: Any = {"at": 1, "paper": "pal", "item": "", "name": "all of PAL", "cost": "about 9 h"}
    assert question_of({**press, "size": QUICK}) is None
    asked = question_of({**press, "size": WHOLE, "runs": "80 runs", "own": ""})
    assert asked is not None
    assert asked.startswith("All of PAL with all traces and seeds of the paper: 80 runs, about 9 h")
    of_lab = question_of({**press, "size": WHOLE, "runs": "9 runs", "own": '{"trace": "lab"}'})
    assert of_lab is not None
    assert of_lab.startswith("All of PAL of lab with all seeds of the paper: 9 runs")


def test_an_item_is_found_by_each_of_its_names() -> None:
    shown = papers(item("fig-6", also=["fig-7"]))
    found = item_in(shown, "pal", "fig-7")
    assert found is not None
    assert found["key"] == "fig-6"
    assert item_in(shown, "pal", "fig-9") is None
    assert item_in(shown, "sia", "fig-6") is None


def test_what_was_not_made_says_why_and_what_it_takes() -> None:
    assert "It needs <b>GPUs</b>." in str(not_made(LACKING, may_run=True, runs=False))
    assert "less than a CPU minute" in str(not_made(item(), may_run=True, runs=False))
    assert not_made(item(), may_run=True, runs=True) is None


def detail(**changed: Any) -> Any:
    (one,) = reproduction("succeeded")["items"]
    more = {"labels": ["trace", "GPUs"], "rows": [], "why": "", "notes": [], "emulated": False}
    return {**one, **more, "cpu_minutes": None, "figure": None, **changed}


def test_the_reason_of_an_item_that_failed_is_shown() -> None:
    failed = detail(state="failed", failed="philly-1: the disk is full")
    shown = progress(reproduction("failed"), failed, None, may_run=True)
    assert "philly-1: the disk is full" in str(shown)
    assert progress(reproduction("succeeded"), detail(), None, may_run=True) is None


def test_a_table_folds_the_many_values_that_the_paper_does_not_print() -> None:
    printed = row(0.034, published="at most 2", spread=0.25, runs=3)
    few = table(detail(rows=[printed, row(None, published=None)]))
    many = table(detail(rows=[printed, *[row(None, published=None)] * (MOST_BESIDE + 1)]))
    heads, cells = (part.children for part in few[0].children)
    assert [cell.children for cell in heads.children] == [
        *("Trace", "GPUs", "Measure"),
        *("Published", "Ours", "Difference", "± over runs", "Runs"),
    ]
    assert [cell.children for cell in cells[0].children] == [
        *("trace 1", "Sia", "mean JCT (h)"),
        *("at most 2", "1", "+3 %", "0.25", "3"),
    ]
    assert (len(few), len(cells), len(many)) == (1, 2, 2)
    assert "13 values that the paper does not print" in str(many[1])


def test_a_kept_figure_takes_the_inks_of_the_page_and_keeps_its_data() -> None:
    drawn = figure(None, x="GPUs", y="JCT (h)", traces=[go.Bar(x=["<i>a</i>"], y=[1.5])])
    drawn.update_traces(marker_color="#D55E00")
    rule(drawn, None, y=1.0, text="published")
    drawn.update_layout(width=900, title={"text": "Of the trace lab", "y": 0})
    kept = drawn.to_plotly_json()
    dark = reproduced_figure(kept, "dark")

    assert dark["layout"]["annotations"][0]["font"]["color"] == DARK.muted
    assert dark["layout"]["template"]["layout"]["font"]["color"] == DARK.text
    assert not {"width", "title"} & dark["layout"].keys(), "the page says it above"
    assert dark["data"][0]["marker"]["color"] == "#D55E00"
    assert dark["data"][0]["x"] == kept["data"][0]["x"]
    light = reproduced_figure(kept, "light")
    assert light["layout"]["annotations"][0]["font"]["color"] == LIGHT.muted


def test_a_figure_with_panels_beside_one_another_is_known() -> None:
    alone: Any = {"layout": {"xaxis": {"title": {"text": "GPUs"}}}}
    beside: Any = {"layout": {"xaxis": {"domain": [0, 0.4]}, "xaxis2": {"domain": [0.6, 1]}}}
    above: Any = {"layout": {"xaxis": {"domain": [0, 1]}, "xaxis2": {"domain": [0, 1]}}}
    assert [has_panels(each) for each in (alone, beside, above)] == [False, True, False]
