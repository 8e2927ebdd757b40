"""The page of reports: it shows the document that its PDF has, word for word."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "backend"))

from report_samples import MONDAY, facts

from backend.reports.builder import build_report
from backend.reports.facts import PeriodFacts
from frontend.components.period import DAYS
from frontend.figures.report import report_figure, shares_figure
from frontend.pages.reports.kept import kept_table
from frontend.pages.reports.layout import asked_of, layout
from frontend.pages.reports.schedules import body_of, schedules_table
from frontend.pages.reports.shown import beginning, change_words, files_of, rest, tenants_in

REPORT = build_report(facts())
FORM = {
    "name": " Mondays ",
    "every": "week",
    "hour": 6,
    "channel": "webhook",
    "url": "https://hooks.example.com/x",
    "secret": "s" * 16,
    "forms": ["pdf"],
}


def text_of(component: Any) -> str:
    parts = component if isinstance(component, list) else [component]
    told = json.dumps(parts, default=lambda part: part.to_plotly_json(), ensure_ascii=False)
    return told.replace("\\u00a0", " ").replace("\u00a0", " ")


def test_the_page_shows_every_sentence_and_every_number_of_the_document() -> None:
    shown = text_of([*beginning(REPORT, scheme="light"), rest(REPORT, scheme="light")])
    for one in REPORT["headlines"]:
        assert one["shown"].replace("\u00a0", " ") in shown
        assert one["formula"] in shown
    for figure in REPORT["figures"]:
        for said in (
            figure["question"],
            figure["answer"],
            figure["formula"],
            figure["window"],
            *figure["policy_versions"],
            *figure["caveats"],
            *(cell for row in figure["shown"] for cell in row),
        ):
            assert json.dumps(said.replace("\u00a0", " "), ensure_ascii=False)[1:-1] in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_has_axes_with_units_and_the_values_of_its_rows(scheme: str) -> None:
    for of in REPORT["figures"]:
        drawn = report_figure(of, scheme=scheme)
        assert drawn.data, of["key"]
        assert drawn.layout.xaxis.title.text
    fair, busy, waited, cost, buy = REPORT["figures"]
    assert list(report_figure(fair, scheme=scheme).data[0].x) == [
        row[2] for row in fair["rows"][:3]
    ]
    assert list(report_figure(busy, scheme=scheme).data[2].y) == [row[3] for row in busy["rows"]]
    hours = [row[3] / 3600 for row in waited["rows"][:3] if isinstance(row[3], float)]
    assert list(report_figure(waited, scheme=scheme).data[1].x) == hours
    assert list(report_figure(cost, scheme=scheme).data[0].x) == [r[3] for r in cost["rows"][:3]]
    assert list(report_figure(buy, scheme=scheme).data[0].x) == [row[2] for row in buy["rows"]]
    assert list(shares_figure(fair, scheme=scheme).data[0].text) == ["40 %", "40 %", "20 %"]


def test_names_of_tenants_are_no_markup_in_figures() -> None:
    report = build_report(facts(("<b>x</b>", 'the "best"', "robotics")))
    drawn = report_figure(report["figures"][0], scheme="light")
    assert "&lt;b&gt;x&lt;/b&gt;" in drawn.layout.yaxis.ticktext
    assert 'the "best"' in drawn.layout.yaxis.ticktext


def test_a_young_cluster_has_a_page_without_figures() -> None:
    nothing = PeriodFacts(None, None, None)
    report = build_report(facts(present=nothing, past=nothing, policies=[], values=[]))
    for of in report["figures"]:
        assert report_figure(of, scheme="light").layout.meta["state"] == "empty"
    assert "no figure for the period before" in text_of(beginning(report, scheme="light"))


def test_headlines_and_the_first_figure_come_without_what_takes_long_to_draw() -> None:
    first, *others = REPORT["figures"]
    shown = text_of(beginning(REPORT, scheme="light"))
    assert f'"id": "report-{first["key"]}"' in shown
    assert "Tbody" not in shown
    assert all(one["question"] not in shown for one in others)


def test_the_script_of_the_charts_is_asked_for_before_the_report_has_come() -> None:
    assert '"type": "Graph"' in text_of(layout())


def test_a_change_says_whether_it_is_good_news() -> None:
    by_key = {one["key"]: one for one in REPORT["headlines"]}
    assert "better" in change_words(by_key["utilisation"])
    assert "better" in change_words(by_key["wait"])  # it fell
    assert "better" not in change_words(by_key["cost"])
    worse = build_report(facts(present=facts().past, past=facts().present))["headlines"]
    assert "worse" in change_words(next(one for one in worse if one["key"] == "wait"))


def test_the_controls_ask_for_whole_days_and_the_files_for_the_same() -> None:
    assert asked_of("last-month", None) == {"period": "last-month"}
    assert asked_of(DAYS, None) == asked_of(DAYS, ["2026-11-02", None]) == {}
    days = asked_of(DAYS, ["2026-11-02", "2026-11-08"])
    assert days == {"start": "2026-11-02T00:00:00+00:00", "end": "2026-11-09T00:00:00+00:00"}
    links = text_of(files_of("clu_1", days))
    for form in ("pdf", "csv", "json"):
        assert (
            f"/api/v1/clusters/clu_1/report/{form}?from=2026-11-02T00%3A00%3A00%2B00%3A00&to="
            in links
        )


def test_the_address_says_the_period_and_the_tenant() -> None:
    shown = text_of(layout(tenant="vision", period="last-month"))
    assert '"value": "last-month"' in shown
    assert '"value": "vision"' in shown
    days = text_of(layout(**{"from": "2026-11-02", "to": "2026-11-08"}))
    assert '"value": ["2026-11-02", "2026-11-08"]' in days


def test_tenants_that_were_named_can_be_chosen() -> None:
    names = [one["value"] for one in tenants_in(REPORT, [])]
    assert names == ["language", "robotics", "vision"]
    own = build_report(facts(("vision", "other tenants"), tenant="vision"))
    assert [one["value"] for one in tenants_in(own, [{"value": "x", "label": "x"}])] == [
        "vision",
        "x",
    ]


def test_the_form_of_a_schedule_sends_what_it_says() -> None:
    webhook = body_of(FORM, cluster_id="clu_1", tenant=None)
    assert webhook["name"] == "Mondays"
    assert webhook["secret"] == "s" * 16
    folder = body_of(FORM | {"channel": "folder"}, cluster_id="clu_1", tenant="vision")
    assert folder["tenant"] == "vision"
    assert not {"url", "secret"} & folder.keys()


def test_lists_say_what_is_not_there_and_offer_only_what_may_be_done() -> None:
    assert "No report is kept" in text_of(kept_table([], may=True))
    assert "No report by schedule" in text_of(schedules_table([], {}, may=True))
    schedule: Any = {
        "id": "rsc_1",
        "name": "Mondays",
        "every": "week",
        "hour": 6,
        "channel": "webhook",
        "url": "https://hooks.example.com/…",
        "tenant": None,
        "active": True,
        "next_due_at": f"{MONDAY.isoformat()}",
        "version": 1,
    }
    delivery: Any = {
        "id": "rdl_1",
        "state": "failed",
        "due_at": MONDAY.isoformat(),
        "tries": 7,
        "message": "The webhook answered 500.",
    }
    for may in (True, False):
        shown = text_of(schedules_table([schedule], {"rsc_1": [delivery]}, may=may))
        assert ("Send now" in shown) is may
        assert "The webhook answered 500." in shown
