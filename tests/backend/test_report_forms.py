"""All forms of a report say the same, and no form is harmed by what users wrote."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pypdf
import pytest
from report_samples import MONDAY, WEEK, facts, fairness, use, waits

from backend.periods import Period
from backend.reports import words
from backend.reports.builder import build_report
from backend.reports.csv_form import csv_of
from backend.reports.facts import PeriodFacts, PolicyDecided, TenantWait, TypeValue, Waits
from backend.reports.figures import parts
from backend.reports.pdf.document import pdf_of
from backend.reports.pdf.kept import Kept
from maat.api import shown_numbers
from maat.api.report_rows import drawn_rows, sum_rows
from maat.api.reports import FigureOut, Paper, ReportOut
from maat.cli.fairness import rho_words

KEPT = Kept("rep_1", "2026-11-16T06:00:00.000Z", "ab" * 32)


def text_of(data: bytes) -> str:
    pages = pypdf.PdfReader(io.BytesIO(data)).pages
    return re.sub(r"\s+", " ", " ".join(page.extract_text() for page in pages))


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def csv_rows(report: ReportOut) -> list[list[str]]:
    return list(csv.reader(io.StringIO(csv_of(report).decode("utf-8"), newline="")))


def test_json_csv_and_pdf_have_the_same_numbers() -> None:
    report = build_report(facts())
    rows, printed = csv_rows(report), text_of(pdf_of(report, kept=KEPT))
    again = json.loads(json.dumps(report))
    assert again == report
    for one in report["headlines"]:
        (row,) = [row for row in rows if row[:2] == ["headlines", one["key"]]]
        assert float(row[3]) == one["value"]
        assert plain(one["shown"]) in printed
        assert plain(one["shown_change"]) in printed
    for figure in report["figures"]:
        of_csv = [row[1:] for row in rows if row[0] == figure["key"]][1:]
        assert [[_read(cell) for cell in row] for row in of_csv] == figure["rows"]
        assert plain(figure["question"]) in printed
        assert plain(figure["answer"]) in printed
        assert plain(figure["formula"]) in printed
        assert plain(figure["window"]) in printed
        for shown in figure["shown"]:
            assert plain(" ".join(shown)) in printed


def _read(cell: str) -> str | float | None:
    if cell == "":
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def test_sums_over_tenants_are_those_of_the_headlines_and_of_the_days() -> None:
    report = build_report(facts())
    by_key = {figure["key"]: figure for figure in report["figures"]}
    headline = {one["key"]: one["value"] for one in report["headlines"]}
    tenants = [row for row in by_key["cost"]["rows"] if row[0] not in ("all tenants", "idle")]
    assert sum(float(row[3] or 0) for row in tenants) == pytest.approx(headline["cost"], abs=0.05)
    held = sum(float(row[1] or 0) for row in tenants)
    days = sum(float(row[1] or 0) + float(row[2] or 0) for row in by_key["busy"]["rows"])
    capacity = sum(float(row[4] or 0) for row in by_key["busy"]["rows"])
    assert held == pytest.approx(days, abs=0.05)
    assert held / capacity == pytest.approx(headline["utilisation"], abs=1e-3)


def test_the_same_document_gives_the_same_bytes() -> None:
    one, other = (pdf_of(build_report(facts()), kept=KEPT) for _ in range(2))
    assert one == other


@pytest.mark.parametrize(("paper", "points"), [(Paper.A4, (595, 842)), (Paper.LETTER, (612, 792))])
def test_the_pdf_has_embedded_fonts_numbered_pages_and_an_outline(
    paper: Paper, points: tuple[int, int]
) -> None:
    report = build_report(facts())
    reader = pypdf.PdfReader(io.BytesIO(pdf_of(report, paper=paper, kept=KEPT)))
    assert (round(reader.pages[0].mediabox.width), round(reader.pages[0].mediabox.height)) == points
    for number, page in enumerate(reader.pages, start=1):
        assert f"page {number} of {len(reader.pages)}" in page.extract_text()
        fonts = page["/Resources"]["/Font"].get_object().values()
        for font in (found.get_object() for found in fonts):
            if font["/BaseFont"] == "/Helvetica":  # the library names it, and no text uses it
                continue
            assert "/FontFile2" in font["/FontDescriptor"].get_object()
        assert "/XObject" not in page["/Resources"], "a figure is a picture, not lines"
    titles = [entry["/Title"] for entry in reader.outline]
    assert titles == [*(figure["question"] for figure in report["figures"]), "About this report"]
    assert reader.metadata is not None
    assert reader.metadata.title == f"Cluster report: {report['title']}"


NAMES = (
    '=HYPERLINK("http://evil.example","x")',
    "<b>bold</b> & <font color=red>",
    "+1-@\tsum 日本 équipe 😀",
)


def test_what_users_wrote_is_text_in_every_form() -> None:
    report = build_report(facts(NAMES, cluster="-cmd|' /C calc'!A0", tenant=None))
    for row in csv_rows(report):
        for cell in row:
            if cell.startswith(("=", "+", "-", "@", "\t")):
                float(cell)  # only numbers begin so
    printed = text_of(pdf_of(report))
    assert "<b>bold</b> & <font color=red>" in printed
    assert "équipe" in printed


def test_a_name_of_two_hundred_letters_and_two_hundred_tenants_fit() -> None:
    names = [f"{'x' * 195}{n:03}" for n in range(200)]
    report = build_report(facts(names))
    pdf = pdf_of(report)
    printed = text_of(pdf)
    assert "188 others (in the CSV)" in printed
    assert "more in the CSV" in printed
    cost = report["figures"][3]
    held = [row[1] for row in cost["rows"][12:200] if isinstance(row[1], float)]
    assert plain(words.number(sum(held))) in printed, "of the others, what adds up"
    assert len([row for row in csv_rows(report) if row[0] == "cost"]) == 203


def test_a_figure_stands_whole_on_its_page_and_the_foot_says_that_nothing_was_kept() -> None:
    for tenants in (1, 3, 8):
        report = build_report(facts([f"team-{n}" for n in range(tenants)]))
        pages = pypdf.PdfReader(io.BytesIO(pdf_of(report))).pages
        told = [plain(page.extract_text()) for page in pages]
        for figure in report["figures"]:
            (page,) = [text for text in told if plain(figure["answer"]) in text]
            for part in (figure["question"], *map(" ".join, figure["shown"]), figure["formula"]):
                assert plain(part) in page
        assert all("as of 2026-11-17 06:00 UTC, not kept" in text for text in told)
        assert not any("preview" in text for text in told)


@pytest.mark.parametrize(("tenants", "most"), [(1, 4), (6, 5), (60, 5), (200, 5)])
def test_a_report_of_many_tenants_has_few_pages_and_its_sums_are_marked(
    tenants: int, most: int
) -> None:
    report = build_report(facts([f"team-{n:03}" for n in range(tenants)]))
    pages = pypdf.PdfReader(io.BytesIO(pdf_of(report, kept=KEPT))).pages
    assert len(pages) <= most
    assert [len(sum_rows(figure)) for figure in report["figures"]] == (
        [0, 0, 0, 2, 0] if tenants == 1 else [1, 0, 1, 2, 0]
    )


def test_a_tenant_that_is_called_like_a_sum_is_no_sum() -> None:
    report = build_report(facts(("idle", "all tenants", "vision")))
    drawn, left_out = drawn_rows(report["figures"][3], ["cost"])
    assert [row[0] for row in drawn] == ["idle", "all tenants", "vision"]
    assert left_out == 0


def test_a_young_cluster_has_a_report_that_says_what_is_not_known() -> None:
    nothing = PeriodFacts(None, None, None)
    report = build_report(facts(present=nothing, past=nothing, policies=[], values=[]))
    answers = " ".join(figure["answer"] for figure in report["figures"])
    assert "Nothing can be said" in answers
    assert all(one["shown"] == "–" for one in report["headlines"])
    assert "no figure for the period before" in text_of(pdf_of(report))


def test_answers_follow_from_the_numbers() -> None:
    names = ("vision", "language", "robotics")
    even = replace(
        fairness(names),
        tenants=[
            replace(one, median=0.8, deserved=0.3, actual=0.3) for one in fairness(names).tenants
        ],
    )
    present = PeriodFacts(use(names, price=None), waits(names), even, 702)
    answers = {f["key"]: f["answer"] for f in build_report(facts(present=present))["figures"]}
    assert "No tenant was by its median clearly worse off" in answers["fair"]
    assert "got less of the GPUs than" not in answers["fair"]
    assert answers["cost"].startswith("No price is known")
    unwanted = [replace(one, mean_value=0.0, positive_share=0.0) for one in facts().values]
    none = {"mean_value": None, "positive_share": None, "covered": 0.0, "objective": None}
    priceless = [replace(one, policy="las", **none) for one in facts().values]
    told = {
        name: build_report(facts(values=values))["figures"][4]["answer"]
        for name, values in (("unwanted", unwanted), ("priceless", priceless))
    }
    assert told["unwanted"].startswith("Nothing, by the rounds of sia")
    assert "las solves none" in told["priceless"]


def test_nothing_is_concluded_from_the_prices_of_a_small_part_of_the_time() -> None:
    unwanted = [replace(one, mean_value=0.0, positive_share=0.0) for one in facts().values]

    def figure(covered: float, values: Sequence[TypeValue] = unwanted) -> FigureOut:
        thin = [replace(one, covered=covered) for one in values]
        return build_report(facts(values=thin))["figures"][4]

    little, most = figure(0.12), figure(0.6)
    for report in (little, figure(0.12, facts().values)):
        answer = plain(report["answer"])
        assert answer.startswith("It cannot be said whether a type was scarce: a price is known")
        assert "12 % of the time" in answer
        assert "Fullest was a100" in answer
        assert "14 jobs wait at the end" in answer
        assert [row[2:4] for row in report["rows"]] == [[None, None], [None, None]]
        assert "too little to conclude from" in report["caveats"][0]
    told = plain(most["answer"])
    assert "no type was scarce for more than 5.0 % of the 60 % of the time with a price" in told
    assert "of the rest nothing is known, and 14 jobs wait at the end" in told
    assert "Nothing" not in told


def test_time_in_which_no_round_decided_is_time_without_a_price() -> None:
    short = [replace(one, hours=26.0) for one in facts().values]
    away = build_report(facts(values=short, elapsed_hours=96.0))["figures"][4]
    told = plain(away["answer"])
    assert told.startswith("It cannot be said whether a type was scarce")
    assert "27 % of the time" in told
    assert "one more a100 was worth most" in told
    assert "of the 27 % of the time with a price" in told
    assert "Rounds decided for 1 d 2 h of 4 d" in plain(" ".join(away["caveats"]))
    there = build_report(facts(values=short, elapsed_hours=26.2))["figures"][4]
    assert "It cannot be said" not in there["answer"]
    assert not any("Rounds decided" in one for one in there["caveats"])


def test_one_policy_that_decided_for_a_while_does_not_say_that_nothing_was_scarce() -> None:
    sia = [replace(one, mean_value=0.0, positive_share=0.0, hours=10) for one in facts().values]
    none = {"mean_value": None, "positive_share": None, "covered": 0.0, "objective": None}
    las = [replace(one, policy="las", policy_version="", hours=158, **none) for one in sia]
    told = build_report(facts(values=[*sia, *las]))["figures"][4]["answer"]
    assert "Nothing" not in told
    assert "las solves none" in told
    scarce = [replace(one, hours=10) for one in facts().values]
    told = build_report(facts(values=[*scarce, *las]))["figures"][4]["answer"]
    assert "one more a100 was worth most" in told


def test_a_period_that_is_not_over_and_a_change_of_policy_are_said() -> None:
    half = MONDAY + timedelta(days=3)
    period = Period(MONDAY, MONDAY + WEEK)
    spans = [
        PolicyDecided("las", "", "packed", MONDAY, half, 72, 100),
        PolicyDecided("sia", "3f2a9c01d4e5b6a7", "whole-node", half, MONDAY + WEEK, 96, 100),
    ]
    report = build_report(facts(period=period, now=half, policies=spans))
    assert "not over" in report["caveats"][0]
    assert "changed within the period" in report["caveats"][1]
    assert report["figures"][0]["policy_versions"] == [
        "las (parameters not recorded)",
        "sia 3f2a9c01",
    ]


def test_a_policy_that_came_back_is_told_as_the_one_that_decides_besides() -> None:
    begin, end = MONDAY + timedelta(hours=50), MONDAY + timedelta(hours=50, minutes=10)
    sia = PolicyDecided("sia", "3f2a9c01d4e5b6a7", "whole-node", MONDAY, begin, 50, 1500)
    spans = [
        sia,
        PolicyDecided("srtf", "28b3571a00000000", "packed", begin, end, 1 / 6, 5),
        replace(sia, start=end, end=MONDAY + WEEK, hours=117.8, rounds=3500),
    ]
    report = build_report(facts(policies=spans))
    assert [one["policy"] for one in report["policies"]] == ["sia", "srtf", "sia"]
    assert report["figures"][0]["policy_versions"] == ["sia 3f2a9c01", "srtf 28b3571a"]
    when = "from 11 Nov 2026 02:00 to 02:10"
    changed = f"srtf 28b3571a with packed {when}, else sia 3f2a9c01 with whole-node."
    assert plain(report["caveats"][0]) == f"The policy changed within the period: {changed}"
    assert plain(report["summary"]).endswith(
        f"GPUs were given by sia with whole-node, and by srtf with packed {when}."
    )
    turns = [sia, replace(spans[1], end=begin + timedelta(hours=2), hours=0.5)]
    told = plain(build_report(facts(policies=turns))["caveats"][0])
    assert "srtf 28b3571a with packed for 30 min from 11 Nov 2026 02:00 to 04:00, else sia" in told


def test_few_jobs_are_said_to_be_few() -> None:
    names = ("vision", "language", "robotics")
    present = PeriodFacts(use(names), waits(names), fairness(names, jobs=5), 15)
    figure = build_report(facts(present=present))["figures"][0]
    assert any("fewer than 30" in caveat for caveat in figure["caveats"])


def test_a_tenant_that_waited_long_is_named_by_its_median_too_and_few_are_not_judged() -> None:
    names = ("vision", "language", "robotics")
    of_all = TenantWait("all tenants", 295, 97.0, 1740.0, 20_000.0)
    rows = [
        TenantWait("vision", 150, 90.0, 1740.0, 2000.0),
        TenantWait("language", 119, 800.0, 1300.0, 20_000.0),
        TenantWait("robotics", 26, 1326.0, 1400.0, 1500.0),
    ]
    few = Waits(replace(of_all, tenant="all tenants"), rows)
    figure = build_report(facts(present=PeriodFacts(use(names), few, fairness(names), 9)))
    waited = figure["figures"][2]
    assert "By the median language (13 min 20 s) waited longest." in plain(waited["answer"])
    assert "No tenant waited" not in waited["answer"]
    assert any(one.startswith("robotics started fewer than 30 jobs") for one in waited["caveats"])


def answers(names: tuple[str, ...], jobs: tuple[int, ...]) -> str:
    """What is said of tenants that waited and fared alike."""
    waited = [TenantWait(one, n, 300.0, 4000.0, 5000.0) for one, n in zip(names, jobs, strict=True)]
    ended = [
        replace(one, jobs=n, median=0.7)
        for one, n in zip(fairness(names).tenants, jobs, strict=True)
    ]
    present = PeriodFacts(
        use(names),
        replace(waits(names), tenants=waited),
        replace(fairness(names), tenants=ended),
        9,
    )
    figures = build_report(facts(present=present))["figures"]
    return plain(figures[0]["answer"] + figures[2]["answer"])


def test_only_who_has_jobs_enough_is_cleared_of_having_waited_or_fared_worse() -> None:
    names = ("vision", "language", "robotics")
    all_of_them = answers(names, (40, 50, 60))
    assert "No tenant waited much longer than the others." in all_of_them
    assert "No tenant was by its median clearly worse off" in all_of_them
    two_of_three = answers(names, (40, 50, 12))
    assert "No tenant of at least 30 jobs waited much longer" in two_of_three
    assert "No tenant of at least 30 jobs was by its median clearly worse" in two_of_three
    for jobs in ((12, 5, 9), (40, 5, 9)):
        assert "No tenant" not in answers(names, jobs)


def test_the_summary_says_what_is_compared_and_who_gave_gpus() -> None:
    summary = build_report(facts())["summary"]
    assert "  " not in summary
    alone = build_report(facts(past=PeriodFacts(None, None, None)))["summary"]
    assert alone.startswith("GPUs were given by sia")


def test_one_job_is_no_statistic() -> None:
    names = ("vision", "language")
    one = TenantWait("vision", 1, 83.0, 83.0, 83.0)
    mine = replace(fairness(names).tenants[0], jobs=1, late=0.0, deserved=0.0006, actual=0.0003)
    present = PeriodFacts(
        use(names),
        replace(waits(names), tenants=[one]),
        replace(fairness(names), tenants=[mine]),
        1,
    )
    figures = build_report(facts(tenant="vision", present=present))["figures"]
    fair, waited = figures[0], figures[2]
    assert "The one job that started had waited 1 min 23 s." in plain(waited["answer"])
    assert "The one finished job was not worse off" in fair["answer"]
    assert "0 %" not in plain(fair["answer"])
    told = plain(fair["answer"])
    assert "Its share of the GPUs was 0.03 %, less than the 0.06 % that it deserved." in told
    assert [plain(text) for text in fair["shown"][0][-2:]] == ["0.06 %", "0.03 %"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00001, "< 0.01 %"), (0.0006, "0.06 %"), (0.0123, "1.2 %"), (0.995, "100 %")],
)
def test_small_shares_keep_two_figures(share: float, text: str) -> None:
    assert plain(words.percent(share)) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.9996, "1.00"), (0.5, "0.500"), (9.996, "10.0"), (99.96, "100"), (0, "0")]
)
def test_a_number_has_three_figures_after_rounding_too(value: float, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize("worst", [1.5251, 1.5249, 2.0049999, 1.525, 1.535, 1.9951])
def test_a_sentence_a_table_a_chart_and_the_terminal_round_a_number_alike(worst: float) -> None:
    names = ("vision", "speech")
    fair = fairness(names)
    every = replace(fair.all, jobs=50, worst=worst, p90=worst)
    present = PeriodFacts(use(names), waits(names), replace(fair, all=every), 50)
    report = build_report(facts(present=present))
    found = next(one for one in report["figures"] if one["key"] == "fair")
    keys = [column["key"] for column in found["columns"]]
    cell_of = dict(zip(keys, found["rows"][-1], strict=True))
    by_terminal = rho_words(worst)
    for key in ("worst", "p90"):
        column = found["columns"][keys.index(key)]
        assert parts.shown(column, cell_of[key]) == by_terminal
        assert float(shown_numbers.number(float(cell_of[key] or 0.0))) == float(by_terminal)
    assert f"The worst took {by_terminal} times as long as alone" in found["answer"]
    assert f"nine of ten at most {by_terminal} times" in found["answer"]


@pytest.mark.parametrize("late", [0.12504, 0.12496, 0.005004])
def test_a_share_is_rounded_alike_in_a_sentence_and_in_a_table(late: float) -> None:
    names = ("vision", "speech")
    fair = fairness(names)
    every = replace(fair.all, jobs=5000, late=late)
    present = PeriodFacts(use(names), waits(names), replace(fair, all=every), 5000)
    report = build_report(facts(present=present))
    found = next(one for one in report["figures"] if one["key"] == "fair")
    keys = [column["key"] for column in found["columns"]]
    place = keys.index("late")
    assert (
        f"{parts.shown(found['columns'][place], found['rows'][-1][place])} were" in found["answer"]
    )


def test_a_tenants_sentences_tell_of_the_tenant() -> None:
    names = ("vision", "other tenants")
    own = fairness(names)
    mine, rest = own.tenants
    own = replace(own, tenants=[replace(mine, jobs=50, late=0.4, worst=1.75), rest])
    present = PeriodFacts(use(names), waits(names), own, 50)
    past = PeriodFacts(use(names, share=0.41), waits(names, scale=2.0), None, 40)
    report = build_report(facts(tenant="vision", present=present, past=past))
    answers = {one["key"]: one["answer"] for one in report["figures"]}
    shown = {one["key"]: one["shown"] for one in report["headlines"]}
    assert answers["fair"].startswith(f"Of 50\N{NO-BREAK SPACE}finished jobs, {shown['late']}")
    assert "1.75" in answers["fair"]
    assert f"half waited at most {shown['wait']}" in answers["waited"]
    assert f"cost {shown['cost']}" in answers["cost"]
    changes = {one["key"]: one["shown_change"] for one in report["headlines"]}
    assert changes["cost"] in answers["cost"]
    assert "other tenants" not in "".join(answers[key] for key in ("fair", "waited", "cost"))


@pytest.mark.parametrize(
    ("without", "finished", "words_"),
    [
        ([(1, "Latency is its value.")], 50, "Of 50 finished jobs, "),
        (
            [(1, "Latency is its value.")],
            51,
            "Of 50 finished jobs with a known rho (1 of 51 has none: latency is its value), ",
        ),
        (
            [(1, "Latency is its value.")],
            54,
            "Of 50 finished jobs with a known rho "
            "(4 of 54 have none: 1 as latency is its value, 3 as it is not worked out yet), ",
        ),
        ([], 60, "Of 50 finished jobs with a known rho (10 of 60 have none), "),
    ],
)
def test_the_number_of_judged_jobs_says_why_it_is_not_that_of_the_finished(
    without: list[tuple[int, str]], finished: int, words_: str
) -> None:
    to_come = finished - 50 - sum(count for count, _ in without) if finished == 54 else 0
    found = replace(fairness(("vision",), jobs=50), without=without, to_come=to_come)
    present = PeriodFacts(use(("vision",)), waits(("vision",)), found, finished)
    report = build_report(facts(present=present))
    (answer,) = [one["answer"] for one in report["figures"] if one["key"] == "fair"]
    assert plain(answer).startswith(words_)


def test_nothing_is_said_to_be_compared_with_a_past_of_which_nothing_is_known() -> None:
    half = MONDAY + WEEK / 2
    young = replace(facts(now=half), past=PeriodFacts(None, None, None))
    told = [
        f"{report['summary']} {report['caveats'][0]}"
        for report in (build_report(facts(now=half)), build_report(young))
    ]
    assert ["ompared with" in words for words in told] == [True, False]
    assert all("The period is not over" in words for words in told)


def test_sums_are_not_compared_with_a_period_that_began_late() -> None:
    whole, late = build_report(facts()), build_report(replace(facts(), past_differs=True))
    of_whole, of_late = (
        {one["key"]: one["change"] for one in report["headlines"]} for report in (whole, late)
    )
    assert {key for key, change in of_late.items() if change is None} == {"cost", "finished"}
    assert None not in of_whole.values()
    answers = [report["figures"][3]["answer"] for report in (whole, late)]
    assert ["period before" in answer for answer in answers] == [True, False]


def test_the_sentence_of_waits_agrees_with_its_headline() -> None:
    names = ("vision", "language", "robotics")
    short, shorter = (replace(waits(names).all, median=seconds) for seconds in (125.0, 86.0))
    present = PeriodFacts(use(names), replace(waits(names), all=shorter), fairness(names), 9)
    past = replace(present, waits=replace(waits(names), all=short))
    answer = build_report(facts(present=present, past=past))["figures"][2]["answer"]
    assert "The median is down from 2\N{NO-BREAK SPACE}min 5\N{NO-BREAK SPACE}s" in answer
    alike = build_report(facts(present=present, past=present))["figures"][2]["answer"]
    assert "hardly changed" in alike


def test_no_tenant_is_judged_by_few_jobs_and_the_largest_come_first() -> None:
    names = ("vision", "language", "robotics")
    large, middle, _ = fairness(names).tenants
    small = [
        replace(large, tenant=f"team-{n}", jobs=1, median=9.0, deserved=0.02, actual=0.01)
        for n in range(5)
    ]
    present = PeriodFacts(
        use(names), waits(names), replace(fairness(names), tenants=[*small, large, middle]), 245
    )
    figure = build_report(facts(present=present))["figures"][0]
    assert "team-" not in figure["answer"]
    assert any(
        "team-0, team-1, team-2 and 2 more finished fewer than 30 jobs" in one
        for one in figure["caveats"]
    )


def test_a_cost_without_a_price_says_so_wherever_it_stands() -> None:
    names = ("vision", "language", "robotics")
    part = replace(use(names), unpriced=("a100",))
    report = build_report(facts(present=PeriodFacts(part, waits(names), fairness(names), 702)))
    (headline,) = [one for one in report["headlines"] if one["key"] == "cost"]
    figure = report["figures"][3]
    assert headline["label"] == "Cost of allocated GPUs, without a100"
    assert (headline["before"], headline["change"]) == (None, None)
    assert "without those of a100, which have no price" in figure["answer"]
    assert "Cost, without a100" in [one["label"] for one in figure["columns"]]


def test_a_period_that_has_not_begun_is_not_half_over() -> None:
    report = build_report(facts(now=MONDAY - timedelta(days=1)))
    assert "has not begun" in report["caveats"][0]
    assert not any("not over" in one for one in report["caveats"])
    unknown = PeriodFacts(None, None, None)
    nothing = build_report(facts(now=MONDAY - timedelta(days=1), present=unknown, values=[]))
    answers = {one["key"]: one["answer"] for one in nothing["figures"]}
    assert all("can be said" in answers[key] for key in ("fair", "waited", "cost", "buy")), answers
