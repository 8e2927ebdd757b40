"""Tests of the page of fairness: its figures, its tables, and the choice of the period."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.components.period import DAYS, asked_period, period_choice, period_parameters
from frontend.figures.fairness import (
    OTHERS,
    important,
    jain_figure,
    looks_of,
    rho_figure,
    shares_figure,
)
from frontend.pages import fairness_parts as parts
from frontend.pages.job.fairness import parts_of
from maat.vocabulary import FairnessState

LOOKS = looks_of(["blue", "red"], "light")


def rho_of(tenant: str | None, many: int) -> Any:
    points = [{"rho": 0.5 + i / many, "share": (i + 1) / many} for i in range(many)]
    figures = {"jobs": many, "mean": 1.0, "median": 1.0, "worst": 1.5, "unfair_share": 0.5}
    return {"tenant": tenant, "figures": figures, "is_few": many < 30, "cdf": points}


def point(hour: int, *, jain: float | None = 0.9, **tenants: tuple[float, float]) -> Any:
    return {
        "from": f"2026-11-20T{hour:02}:00:00Z",
        "to": f"2026-11-20T{hour + 1:02}:00:00Z",
        "gpus": 64.0,
        "jain_index": jain,
        "tenants": [
            {
                "tenant": None if name == "others" else name,
                "deserved": d,
                "actual": a,
                "demanded": 1,
            }
            for name, (d, a) in tenants.items()
        ],
    }


def shares_of(*points: Any) -> Any:
    whole = point(0, blue=(0.5, 0.4), others=(0.5, 0.6)) if points else None
    return {"whole": whole, "points": list(points), "formula": "max-min", "step_seconds": 3600.0}


def fairness_of(**by_state: int) -> Any:
    counts = dict.fromkeys(FairnessState, 0) | {FairnessState(k): v for k, v in by_state.items()}
    return {
        "all": rho_of(None, 4)["figures"],
        "tenants": [rho_of("blue", 4)],
        "progress": {"total": sum(counts.values()), "by_state": counts},
        "without_rho": [],
        "older_versions": 0,
        "quantile_error": 0.0,
    }


def case(**fields: Any) -> Any:
    why = {
        "sentence": "Of its life: 60% waiting.",
        "cause_sentence": "Mostly because it held fewer GPUs than its equal share: 1 of 4.",
        "reasons": [{"code": "WAITING_CAPACITY", "sentence": "All are taken.", "seconds": 60.0}],
    }
    given = {
        "job_id": "job_1",
        "job_name": "train",
        "model": "bert",
        "tenant": "blue",
        "sentence": "It took 3.00 times as long.",
        "rho": 3.0,
        "jct_seconds": 300.0,
        "baseline_seconds": 100.0,
        "isolated_seconds": {"t4": 100.0},
        "contention": 2.0,
        "rule": "mean-of-ratios",
        "formula_version": 1,
        "finished_at": "2026-11-20T10:00:00Z",
        "why": why,
    }
    return given | fields


def test_a_tenant_of_few_jobs_is_points_and_one_of_many_a_line() -> None:
    few, many = rho_figure([rho_of("blue", 4), rho_of("red", 40)], LOOKS, scheme="light").data
    assert (few.mode, many.mode) == ("markers", "lines+markers")
    assert few.marker.symbol != many.marker.symbol
    assert list(few.y) == [0.25, 0.5, 0.75, 1.0]


def test_rho_of_one_is_drawn_and_the_axes_are_named() -> None:
    drawn = rho_figure([rho_of("blue", 40), rho_of(None, 40)], LOOKS, scheme="dark")
    assert [shape.x0 for shape in drawn.layout.shapes] == [1]
    assert "rho" in drawn.layout.xaxis.title.text
    assert [trace.name for trace in drawn.data] == ["blue", OTHERS]


def test_a_tenant_looks_the_same_wherever_it_stands_and_never_by_hue_alone() -> None:
    assert looks_of(["red", "blue"], "light") == LOOKS
    looks = looks_of([f"tenant-{n}" for n in range(6)], "dark").values()
    for part in ("colour", "dash", "symbol"):
        assert len({getattr(look, part) for look in looks if look.symbol < 6}) == 6
    assert len({look.symbol for look in looks}) == 7


def test_each_tenant_has_its_deserved_share_dotted_beside_the_actual_one() -> None:
    found = shares_of(
        point(0, blue=(0.5, 0.4), others=(0.5, 0.6)), point(1, others=(1.0, 0.5), jain=None)
    )
    drawn = shares_figure(found, LOOKS, scheme="light")
    by_look = {(trace.name, trace.line.dash): list(trace.y) for trace in drawn.data}
    assert by_look["blue", "solid"] == [0.4, 0.0, 0.0]
    assert by_look["blue, deserved", "dot"] == [0.5, 0.0, 0.0]
    assert by_look[OTHERS, "solid"] == [0.6, 0.5, 0.5]
    (index,) = jain_figure(found, scheme="light").data
    assert list(index.y) == [0.9, None, None]


def test_of_many_tenants_the_largest_have_lines_and_the_others_one_together() -> None:
    names = [f"t{n}" for n in range(9)]
    held = {name: (0.1, (9 - n) / 45) for n, name in enumerate(names)}
    found = shares_of(point(0, **held)) | {"whole": point(0, **held)}
    rho = [rho_of(name, 40) for name in names]
    looks = looks_of(important(found, rho), "light")
    assert sorted(name for name in looks if name) == names[:5]

    drawn = shares_figure(found, looks, scheme="light").data
    assert [one.name for one in drawn[1::2]] == [*names[:5], OTHERS]
    named = str(parts.legend(looks, rho, found))
    assert all(name in named for name in (*names[:5], OTHERS))
    assert not any(name in named for name in names[5:])
    assert drawn[-1].y[0] == pytest.approx(sum(held[name][1] for name in names[5:]))
    lines = rho_figure(rho, looks, scheme="light").data
    assert [line.name for line in lines] == [*names[:5], OTHERS]
    # All have the same jobs, so those of four together have the same distribution.
    for axis in ("x", "y"):
        assert list(lines[-1][axis])[4::4] == pytest.approx(list(lines[0][axis])[1:])

    few = {name: held[name] for name in names[:6]}
    assert len(important(shares_of(point(0, **few)) | {"whole": point(0, **few)}, rho[:6])) == 6


@pytest.mark.parametrize(
    "drawn",
    [
        rho_figure([], LOOKS, scheme="light"),
        shares_figure(shares_of(), LOOKS, scheme="light"),
        jain_figure(shares_of(point(0, jain=None)), scheme="dark"),
    ],
)
def test_without_data_a_figure_says_what_is_missing(drawn: Any) -> None:
    assert drawn.layout.meta["state"] == "empty"
    assert drawn.layout.annotations[0].text


def test_progress_is_told_until_all_jobs_are_worked_out() -> None:
    assert "12 of 20 worked out" in str(parts.progress(fairness_of(done=12, waiting=7, working=1)))
    assert parts.progress(fairness_of(done=20)) is None
    left = fairness_of(done=1, failed=1) | {
        "without_rho": [{"reason": "fault", "sentence": "A fault of Maat.", "jobs": 1}],
        "older_versions": 2,
        "quantile_error": 0.0,
    }
    shown = str(parts.progress(left))
    assert "1 job without rho: A fault of Maat." in shown
    assert "2 jobs have a rho by an older version" in shown


def test_the_worst_jobs_are_links_with_how_they_lived() -> None:
    shown = str(parts.worst_table([case(), case(rho=1.5, why=None)]))
    assert "/jobs/job_1" in shown
    assert "Of its life: 60% waiting." in shown
    assert "held fewer GPUs than its equal share: 1 of 4." in shown
    assert "1 min waits for GPUs" in shown
    assert "No job of yours has a rho" in str(parts.worst_table([]))


def test_an_ended_job_says_its_rho_or_why_it_has_none() -> None:
    assert "1 min 40 s" in str(parts_of(case()))
    assert "It failed." in str(parts_of(case(rho=None, sentence="It failed.")))


def test_days_are_asked_for_with_the_last_one_whole() -> None:
    assert asked_period("c", "last-week", None) == {"cluster": "c", "period": "last-week"}
    assert asked_period("c", DAYS, ["2026-11-20", None]) is None
    assert asked_period("c", DAYS, ["2026-11-20", "2026-11-22"]) == {
        "cluster": "c",
        "start": "2026-11-20T00:00:00+00:00",
        "end": "2026-11-23T00:00:00+00:00",
    }


def test_the_address_chooses_the_period() -> None:
    select, calendar = period_choice("x", {"from": "2026-11-20", "to": "2026-11-22"})
    assert (select.value, calendar.value) == (DAYS, ["2026-11-20", "2026-11-22"])
    for one in ({"from": "2026-11-20"}, {"to": "2026-11-20"}):  # that day alone
        select, calendar = period_choice("x", one)
        assert (select.value, calendar.value) == (DAYS, ["2026-11-20", "2026-11-20"])
    select, calendar = period_choice("x", {"period": "last-month"})
    assert (select.value, calendar.value) == ("last-month", [None, None])
    assert calendar.style == {"display": "none"}
    assert period_choice("x", {"period": "nonsense", "from": "nonsense"})[0].value == "this-week"
    checks = period_parameters()
    assert checks["from"]("2026-11-20") is None
    assert "2026-11-20" in (checks["from"]("yesterday") or "")
    assert checks["period"]("nonsense") is not None
