"""The page of terms: what each says, where it leads, what is found, and what the page draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import dash
import pytest
from dash import html
from dash.development.base_component import Component

from backend.settings import Settings
from frontend import app as composition
from frontend.components.fairness_rule import MEANINGS
from frontend.pages.help import page
from frontend.pages.help.term import Formula, Seen, Term, pieces, plain
from frontend.pages.help.terms import GROUPS, TERMS
from maat.api.usage import FORMULAS

ASKED_FOR = (
    *("goodput", "throughput", "efficiency", "noise-scale", "jct", "makespan", "rho"),
    *("deserved-share", "jain", "contention", "restart", "break-even", "price", "utilisation"),
    *("allocated", "used", "useful", "idle", "lost", "quantile", "calibration", "quota"),
    *("preemption", "round", "policy", "placer"),
)


def parts(shown: Any) -> Iterator[Any]:
    for one in shown if isinstance(shown, list) else [shown]:
        yield one
        yield from (part for part in one._traverse() if isinstance(part, Component))


def words(shown: Any) -> str:
    if isinstance(shown, list | tuple):
        return "".join(map(words, shown))
    if isinstance(shown, Component):
        return words(getattr(shown, "children", None) or "")
    return str(shown)


def _is_term(part: Component) -> bool:
    return isinstance(part, html.Article)


def found(sought: str) -> list[str]:
    return [part.id for part in parts(page.shown(sought)) if _is_term(part)]


def test_the_terms_that_pages_use_are_there_each_with_an_anchor_of_its_own() -> None:
    keys = [term.key for term in TERMS]

    assert set(ASKED_FOR) <= set(keys)
    assert len(set(keys)) == len(keys)
    assert found("") == keys == [term.key for terms in GROUPS.values() for term in terms]


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.key)
def test_a_term_has_a_sentence_a_page_and_a_formula_or_why_it_has_none(term: Term) -> None:
    assert term.sentence[0].isupper()
    assert term.sentence.endswith(".")
    assert term.sentence.count(". ") == 0
    assert term.seen
    assert bool(term.formulas) != bool(term.no_formula)
    texts = [text for one in term.formulas for text in (one.text, one.means)]
    for text in (term.sentence, term.more, *texts):
        assert text.count("{") == sum(bool(mark) for mark, _ in pieces(text)), text


def test_every_rule_of_rho_and_every_figure_of_use_has_the_text_of_its_page() -> None:
    by_key = {term.key: term for term in TERMS}

    assert [one.of for one in by_key["rho"].formulas] == [rule.value for rule in MEANINGS]
    for one, meaning in zip(by_key["rho"].formulas, MEANINGS.values(), strict=True):
        assert meaning in one.means
    for name in ("allocated", "used", "lost", "useful", "idle", "utilisation"):
        assert by_key[name].formulas[0].text == f"{name} = {FORMULAS[name]}"


def test_the_pages_that_terms_name_exist(tmp_path: Any) -> None:
    composition.create_app(Settings(data_dir=tmp_path, database_url="", broker_url=""))
    paths = {entry["path"] for entry in dash.page_registry.values()}

    assert "/help" in paths
    assert {urlsplit(seen.path).path for term in TERMS for seen in term.seen} <= paths


def test_no_two_links_of_the_page_have_one_name() -> None:
    ids = [str(part.id) for part in parts(page.layout()) if getattr(part, "id", None)]

    assert sorted(set(ids)) == sorted(ids)


@pytest.mark.parametrize(
    ("sought", "keys"),
    [
        ("pollux eq. 6", ["efficiency"]),
        ("MAKESPAN", ["makespan"]),
        ("phi", ["noise-scale"]),
        ("ratio-to-mean", ["rho"]),
        ("T_sync", ["throughput"]),
        ("dual variable", ["price"]),
    ],
)
def test_a_search_finds_the_terms_that_hold_each_of_its_words(sought: str, keys: list[str]) -> None:
    assert found(sought) == keys


def test_a_search_without_a_match_names_what_was_sought_and_leads_back() -> None:
    shown = page.shown("<b>no such</b>")

    assert found("<b>no such</b>") == []
    assert "No such term: “<b>no such</b>”" in words(shown)
    assert [part.href for part in parts(shown) if hasattr(part, "href")] == ["/help"]


def test_the_text_of_the_address_is_in_the_field_and_narrows_the_terms() -> None:
    shown = page.layout(q=["jain", "rho"])

    assert shown["help-search"].value == "jain"
    drawn = [part.id for part in parts(shown) if _is_term(part)]
    assert drawn == found("jain") != found("")


def test_a_term_is_drawn_as_text_with_subscripts_and_nothing_of_it_is_markup() -> None:
    formula = Formula("x_{<i>} = <script>y</script>^{2}")
    term = Term("k", "<b>Name</b>", "A <img> & more.", (Seen("/", "<u>"),), (formula,))

    drawn = list(parts(page._term(term)))

    assert plain(formula.text) == "x_<i> = <script>y</script>^2"
    assert [part.children for part in drawn if isinstance(part, html.Sub)] == ["<i>"]
    assert [part.children for part in drawn if isinstance(part, html.Sup)] == ["2"]
    assert "A <img> & more." in words(drawn[0])
    kinds = {type(part).__name__ for part in drawn}
    assert kinds == {"Article", "Div", "H3", "A", "P", "Sub", "Sup", "Link"}
