"""Tests of the tables of docs/variability.md.

The runs that fill them are tested in simulation/test_pal.py.
"""

from __future__ import annotations

from benchmarks.variability import Outcome, Run, tables, wanted


def found(**average_jct: float) -> dict[Run, Outcome]:
    """Every run: these average JCTs by placer and setting where they are named, else 100 s."""
    return {
        run: Outcome(average_jct.get(run.placer.replace("-", "_"), 100.0), 1000.0, 10, True)
        for run in wanted(quick=False)
    }


def test_published_figures_stand_beside_ours_with_the_deviation() -> None:
    said = tables(found(pal=25_300.74 * 1.01, packed=30_035), quick=True)
    assert "| pal | 25,554 | 25,301 | +1.000% | 1,000 | 10 | yes |" in said
    assert "| packed | 30,035 | 30,035 | +0.000% |" in said
    assert "| random | 100 | - | - |" in said


def test_gains_are_against_packed_sticky_of_the_same_scores_with_their_spread_over_seeds() -> None:
    outcomes = found(pal=80.0)
    for run in outcomes:
        if run.setting == "medians" and run.workload == 1 and run.placer == "pal":
            outcomes[run] = Outcome(80.0 + run.seed, 1000.0, 10, True)
    said = tables(outcomes, quick=False)
    assert "| published draw (seed 42) | pal | -20.0% | -20.0% | -20.0% | -20.0% |" in said
    assert "| medians | pal | -18.0% ± 1.6% | -20.0% ± 0.0% | -20.0% ± 0.0% |" in said
    assert "| medians | pm-first | +0.0% ± 0.0% |" in said
    assert "| 1.7 | -20.0% | +0.0% |" in said
