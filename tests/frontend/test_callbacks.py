"""Answers of callbacks: outputs by name, and those that are not named keep their value."""

from __future__ import annotations

import pytest
from dash import Output, no_update

from frontend.callbacks import Outputs, all_of

OUTPUT: Outputs = {
    "note": Output("note", "children"),
    "figures": {"first": Output("first", "figure"), "second": Output("second", "figure")},
}


def test_outputs_that_are_not_named_keep_their_value() -> None:
    assert all_of(OUTPUT, {"note": "new", "figures": {"second": 2}}) == {
        "note": "new",
        "figures": {"first": no_update, "second": 2},
    }
    assert all_of(OUTPUT, {}) == {
        "note": no_update,
        "figures": {"first": no_update, "second": no_update},
    }


def test_none_is_a_value() -> None:
    assert all_of(OUTPUT, {"note": None})["note"] is None


@pytest.mark.parametrize("changes", [{"notes": 1}, {"figures": {"third": 3}}])
def test_an_output_that_there_is_none_of_is_an_error(changes: dict[str, object]) -> None:
    with pytest.raises(KeyError, match=r"no output named (notes|third)"):
        all_of(OUTPUT, changes)
