"""Finish-time fairness of finished runs, by each of its rules, as named figures."""

from __future__ import annotations

from collections.abc import Sequence

from maat.laboratory.fairness import Fairness, IsolatedRuns, fairness, static_fairness
from maat.simulation.record import SimulationResult
from maat.vocabulary import FairnessRule


def fairness_of(results: Sequence[SimulationResult]) -> list[dict[str, float | None]]:
    """Return rho by every rule of runs of the same jobs, models, cluster and fidelity.

    The isolated runs, with which jobs are compared, are played once for all. None where no job
    could be compared with itself alone.
    """
    alone = IsolatedRuns(results[0].scenario)
    return [_by_every_rule(result, alone) for result in results]


def _by_every_rule(result: SimulationResult, alone: IsolatedRuns) -> dict[str, float | None]:
    figures: dict[str, float | None] = {}
    for rule in FairnessRule:
        named = "" if rule is FairnessRule.MEAN_OF_RATIOS else f"_{rule.value.replace('-', '_')}"
        figures |= _figures(named, fairness(result, alone=alone, rule=rule))
    return figures | _figures("_static", static_fairness(result, alone=alone))


def _figures(rule: str, known: Fairness) -> dict[str, float | None]:
    figures = {
        f"rho{rule}_mean": known.mean,
        f"rho{rule}_worst": known.worst,
        f"unfair_fraction{rule}": known.unfair_fraction,
    }
    if not rule:
        figures["rho_median"] = known.median
    return {name: value if known.rho else None for name, value in figures.items()}
