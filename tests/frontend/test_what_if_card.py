"""What if, of the cluster: the fields as a question, refusals beside them, and the answer."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.cluster.what_if_answer import held_words, parts_of, verdict
from frontend.pages.cluster.what_if_fields import (
    changes_of,
    parameters_written,
    place_of,
    what_if_card,
    wrong_bounds,
)
from maat.api.forecasts import MOST_SLOWED, MOST_TIMED, ClusterChangesBody
from maat.client.errors import FieldProblem
from maat.vocabulary import ForecastBasis

DAY = "2026-11-20T14:20:30Z"


def question(**fields: Any) -> Any:
    empty = {"drain": [], "add": "", "policy": None, "placer": None, "stay": "", "moves": ""}
    return {**empty, **fields}


def typed(**values: Any) -> Any:
    """Fields such as `sia__power`: the parameter of a policy."""
    owners = [name.partition("__") for name in values]
    ids = [{"parameter": "what-if", "of": f"policy:{of}", "name": name} for of, _, name in owners]
    return {"ids": ids, "values": list(values.values())}


def parameter(name: str, type: str) -> Any:
    return {"name": name, "type": type}


def when(at: str | None) -> Any:
    return {"p50_at": at, "p90_at": at, "p50_seconds": 1.0, "p90_seconds": 2.0}


def times(*, start: str | None, end: str | None, spans: Any = ()) -> Any:
    held = [dict(zip(("from_at", "gpu_type", "gpu_count"), span, strict=True)) for span in spans]
    return {
        "start": None if start is None else when(start),
        "end": when(end),
        "allocations": held,
        "basis": ForecastBasis.WORK,
        "precedents": 1,
    }


def moved(name: str | None, seconds: float, **more: Any) -> Any:
    sides = {"before": None, "after": None, **more}
    late = {"p50_seconds": seconds, "p90_seconds": seconds * 2, "share": float(seconds > 0)}
    return {"job_id": f"job_{name}", "name": name, **late, **sides}


def side(**more: Any) -> Any:
    figures = ("mean_start_seconds", "mean_end_of_waiting_seconds", "mean_end_seconds")
    means = dict.fromkeys((*figures, "last_end_seconds"), 3600.0)
    parts = {"policy": "sia", "placer": "whole-node"}
    parts |= {"least_stay_seconds": None, "most_moves_per_hour": None}
    return {"jobs": 12, "later": 0, "waiting": 5, "ending": 11, **parts, **means, **more}


def answered(*slowed: Any, **more: Any) -> Any:
    return {
        "state": "succeeded",
        "draws": 9,
        "made_at": DAY,
        "slowed": list(slowed),
        "before": side(),
        "after": side(last_end_seconds=7200.0),
        "notes": [],
        **more,
    }


def test_the_fields_become_the_changes_that_the_service_takes() -> None:
    asked = question(
        drain=["a100-0"], add=" a100=2x8,t4=1x4 ", policy="gavel", placer="packed-sticky"
    )
    fields = typed(gavel__solver="", gavel__share=0.5, sia__power=-0.5)

    body = ClusterChangesBody(**changes_of(asked, fields))

    assert (body.drain_nodes, body.policy, body.placer) == (["a100-0"], "gavel", "packed-sticky")
    assert (body.policy_parameters, body.placer_parameters) == ({"share": 0.5}, {})
    assert body.add_shape == "a100=2x8,t4=1x4"
    assert changes_of(question(add="  "), fields) == {}


def test_bounds_are_asked_as_numbers_and_none_takes_one_away() -> None:
    asked = changes_of(question(stay=" 600 ", moves="none"), typed())
    assert asked == {"least_stay_seconds": 600, "most_moves_per_hour": None}
    assert ClusterChangesBody(**asked).bounds == asked
    assert ClusterChangesBody(policy="fifo").bounds == {}
    assert wrong_bounds(question(stay="0.5", moves="3600")) == {}
    assert wrong_bounds(question(stay="none", moves="")) == {}


@pytest.mark.parametrize(
    ("typed_in", "words"),
    [
        ({"stay": "-1"}, "Give 0 to 2 592 000. For no bound give none."),
        ({"stay": "2592001"}, "Give 0 to 2 592 000. For no bound give none."),
        ({"stay": "soon"}, "Give a number. For no bound give none."),
        ({"stay": "nan"}, "Give a number. For no bound give none."),
        ({"moves": "0"}, "Give 1 to 3 600. For no bound give none."),
        ({"moves": "1.5"}, "Give a whole number. For no bound give none."),
    ],
)
def test_a_bound_that_cannot_be_is_refused_beside_its_field(
    typed_in: dict[str, str], words: str
) -> None:
    assert wrong_bounds(question(**typed_in)) == dict.fromkeys(typed_in, words)


def test_parameters_of_an_address_are_numbers_where_their_policy_takes_numbers() -> None:
    sia: Any = {"parameters": [parameter("power", "number"), parameter("rule", "string")]}
    pal: Any = {"parameters": [parameter("classes", "integer")]}
    written = {
        "policy_parameter": ["power=-0.5", "rule=2", "other=x=y"],
        "placer_parameter": ["classes=three"],
    }

    found = parameters_written(written, [("policy:sia", sia), ("placer:pal", pal)])

    assert found == {
        "policy:sia": {"power": -0.5, "rule": "2", "other": "x=y"},
        "placer:pal": {"classes": "three"},
    }


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/changes/drain_nodes/0", "drain"),
        ("/changes/add_shape", "add"),
        ("/changes/policy", "policy"),
        ("/changes/least_stay_seconds", "stay"),
        ("/changes/most_moves_per_hour", "moves"),
        ("/changes/placer", "placer"),
        ("/changes/policy_parameters/power", "policy:sia/power"),
        ("/changes/placer_parameters/power", None),
        ("/cluster_id", None),
    ],
)
def test_a_refusal_stands_beside_the_field_that_it_is_about(
    pointer: str, field: str | None
) -> None:
    assert (
        place_of(question(policy="sia"), FieldProblem(pointer, pointer.split("/")[-1], "Wrong."))
        == field
    )


def test_the_card_is_folded_unless_the_address_asks_and_then_it_holds_the_question() -> None:
    folded, asked = (
        what_if_card(),
        what_if_card(["t4-0", "t4-1"], "two t4", "fifo", policy_parameter="power=2"),
    )

    def opened(card: Any) -> tuple[bool, int]:
        (details,) = [part for part in card.children if type(part).__name__ == "Details"]
        return details.open, details.children[0].n_clicks

    assert (opened(folded), opened(asked)) == ((False, 0), (True, 1))
    held: Any = asked
    values = [held[f"what-if-{name}"].value for name in ("drain", "add", "policy", "placer")]
    assert values == [["t4-0", "t4-1"], "two t4", "fifo", None]
    assert held["what-if-written"].data["policy_parameter"] == ["power=2"]
    assert held["what-if-parameters-box"].open
    bounded: Any = what_if_card(stay="600", moves="none")
    assert opened(bounded) == (True, 1)
    assert [bounded[f"what-if-{name}"].value for name in ("stay", "moves")] == ["600", "none"]


def test_the_verdict_counts_who_ends_earlier_and_later_and_names_the_most_slowed() -> None:
    slow, fast = moved("slow", 720.0), moved("fast", -60.0)

    assert verdict([slow, fast, moved("same", 0.2)], side(), 18) == (
        "Of 12 jobs, 1 usually ends earlier and 1 later. Most slowed: slow, 12 min later."
    )
    assert verdict([fast, moved("faster", -120.0)], side(), 18) == (
        "Of 12 jobs, 2 usually end earlier and none later. Most hastened: faster, 2 min earlier."
    )
    assert "none usually ends earlier and 1 later" in verdict([slow], side(), 18)
    assert verdict([], side(jobs=1), 18) == "Of 1 job, none usually ends earlier or later."
    assert verdict([slow], side(jobs=1), 1).startswith(
        "In 1 draw so far, of 1 job, none ends earlier and 1 later."
    )
    assert "at least 200 later" in verdict([slow] * MOST_SLOWED, side(), 18)


def test_jobs_stand_before_and_after_and_another_tenants_has_no_name() -> None:
    before = times(start="2026-11-20T15:05:00Z", end=None)
    after = times(start=None, end=DAY, spans=[(DAY, "a100", 8)])
    mine = moved("mine", -60.0, before=before, after=after)

    shown = str(parts_of(answered(moved(None, 60.0), mine, notes=["No job here can use h100."])))

    for words in ("'15:05'", "in over 14 days", "→ has started", "→ 14:20"):
        assert words in shown
    assert "/jobs/job_mine" in shown
    assert "another tenant's job" in shown
    assert "job_None" not in shown
    assert "No job here can use h100." in shown
    assert "as now, 8 × a100 from 14:20" in shown
    assert shown.count("Caption(") == 2


def test_both_sides_say_what_bounds_moves() -> None:
    bounds = {"least_stay_seconds": 600.0, "most_moves_per_hour": 1}
    shown = str(parts_of(answered(after=side(**bounds))))
    for words in ("Bound on moves", "Td('no bound')", "least stay 10 min, 1 move an hour at most"):
        assert words in shown


def test_what_a_change_leaves_as_it_is_stands_once() -> None:
    same = times(start="2026-11-20T15:05:00Z", end=DAY)
    later = times(start="2026-11-20T15:05:00Z", end="2026-11-20T16:00:00Z")
    mine = moved("mine", 60.0, before=same, after=later)

    shown = str(parts_of(answered(mine)))

    assert shown.count("15:05") == 1
    assert "→ 16:00" in shown
    assert shown.count("→ ") == 2  # in the caption, and this one


def test_a_long_answer_says_how_many_jobs_it_leaves_out() -> None:
    many = [moved(f"job-{number}", 100.0 - number) for number in range(2 * MOST_TIMED + 2)]

    shown = str(parts_of(answered(*many)))

    assert "and 2 other jobs" in shown
    assert (f"job_job-{MOST_TIMED}'" in shown, "job_job-41'" in shown) == (False, True)
    assert "other job" not in str(parts_of(answered(many[0])))


def test_what_a_job_holds_over_time_is_cut_after_the_first_changes() -> None:
    spans = [(DAY, "a100", 8), (DAY, None, 0), (DAY, "t4", 4), (DAY, "t4", 8)]

    assert held_words(times(start=None, end=DAY, spans=spans), DAY) == (
        "as now, 8 × a100 from 14:20, nothing from 14:20, 4 × t4 from 14:20, …"
    )
    assert held_words(times(start=DAY, end=DAY, spans=spans[:1]), "2026-11-19T10:00:00Z") == (
        "8 × a100 from 20 Nov 14:20"
    )
    assert held_words(times(start=None, end=DAY), DAY) == "as now"
    assert held_words(times(start=DAY, end=None), DAY) == held_words(None, DAY) == "–"


def test_a_cancelled_question_says_so() -> None:
    none = dict.fromkeys(("draws", "slowed", "before", "after", "notes"))
    assert "was cancelled" in str(parts_of(answered(**{**none, "state": "cancelled"})))


def test_an_end_and_a_difference_that_point_different_ways_are_called_unclear() -> None:
    def ends_in(seconds: float) -> Any:
        ends = {"p50_at": DAY, "p90_at": DAY, "p50_seconds": seconds, "p90_seconds": seconds}
        return {**times(start=None, end=DAY), "end": ends}

    sides = {"before": ends_in(600.0), "after": ends_in(300.0)}
    contrary, plain = moved("contrary", 250.0, **sides), moved("plain", -250.0, **sides)

    assert verdict([contrary], side(jobs=2), 9) == "Of 2 jobs, none usually ends earlier or later."
    shown = str(parts_of(answered(contrary, plain)))
    assert "unclear" in shown
    assert "4 min 10 s earlier" in shown
    assert "4 min 10 s later" not in shown
