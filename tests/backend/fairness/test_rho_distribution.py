"""Tests of distributions of rho: sums of days tell of them what the jobs themselves do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.fairness.distribution import ERROR, Distribution, RhoSums

rho = st.floats(0.002, 500.0)
some_days = st.lists(st.lists(rho, min_size=1, max_size=30), min_size=1, max_size=6)


@given(some_days, st.booleans())
def test_a_distribution_of_sums_is_that_of_its_jobs(days: list[list[float]], last: bool) -> None:
    exact = Distribution(sorted(one for day in days for one in day))
    parts = [Distribution(sums=[RhoSums.of(day)]) for day in days]
    if last:  # the last day was not summed up
        parts[-1] = Distribution(sorted(days[-1]))
    found = Distribution.merged(parts)

    told, true = found.figures, exact.figures
    assert (told["jobs"], told["worst"], told["unfair_share"]) == (
        true["jobs"],
        true["worst"],
        pytest.approx(true["unfair_share"]),
    )
    assert told["mean"] == pytest.approx(true["mean"], abs=1e-6)
    assert told["p90"] == pytest.approx(true["p90"], rel=1.0001 * ERROR)
    for one, other in zip(found.shown("x")["cdf"], exact.shown("x")["cdf"], strict=True):
        assert one["share"] == other["share"]
        assert one["rho"] == pytest.approx(other["rho"], rel=1.0001 * ERROR)


def test_no_job_has_no_figures() -> None:
    nothing = Distribution.merged([])
    assert nothing.figures == {
        "jobs": 0,
        "mean": None,
        "median": None,
        "p90": None,
        "worst": None,
        "unfair_share": None,
    }
