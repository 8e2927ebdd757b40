"""docs/library.md: its examples run, one after the other, and it names all that there is."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import maat
from maat.library.conditions import ConditionValues

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_examples_of_the_page_are_true() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(blocks), {}, "docs/library.md", str(PAGE), 0
    )
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_the_page_names_every_name_and_condition() -> None:
    text = PAGE.read_text(encoding="utf-8")
    returned = {
        "Autoscaled",
        "Comparison",
        "Replay",
        "Reproduced",
        "Run",
        "Swept",
        "Table",
        "Tuned",
        "WhatIf",
    }
    for name in set(maat.__all__) - returned:
        assert f"maat.{name}" in text, name
    for name in ConditionValues.__annotations__:
        assert f"`{name}`" in text, name
