"""What the search of fits alone changes under `paper`: the published one, and the minimum's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from maat.figures.bars import grouped_bars
from maat.figures.data import Estimate
from maat.papers.bench import Bench
from maat.papers.fidelity.runs import FIRST, PAPER, difference, needs, percent, played
from maat.papers.items import Item, Outcomes, Row, Runs, Shown, WithRho
from maat.papers.observation import Observation
from maat.papers.sia.runs import firsts, of
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import FitSearch
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import FairnessRule

TRACES = ("philly-1", "philly-2", "philly-3", "saturn-1", "saturn-2", "saturn-3")
GENERATED = ("generated-1", "generated-2", "generated-3")
SEARCHES = (FitSearch.MINIMUM, FitSearch.PUBLISHED)
CLUSTER, JOBS, HOURS = "t4=4x4,rtx=2x8,a100=1x8", 40, 2.0
MEASURES = {
    "avg_jct_hours": "average JCT, h",
    "p99_jct_hours": "p99 JCT, h",
    "restarts_per_job": "restarts per job",
    "mean_rho": "mean rho",
    "worst_rho": "worst rho",
    "unfair_percent": "jobs with rho above 1, %",
}


def scenario_of(bench: Bench, name: str) -> Scenario:
    """Return a simulation under `paper`: of a trace, or of generated jobs of the catalog."""
    if name not in GENERATED:
        return played(bench, name, PAPER)
    workload = bench.generated("philly", jobs=JOBS, hours=HOURS, seed=int(name[-1]))
    under = Conditions(fidelity=fidelity(PAPER))
    return Scenario(workload, catalog_models(), Cluster.parse(CLUSTER), conditions=under)


def _runs(bench: Bench) -> Runs:
    """Jobs are measured against themselves alone with fits at their minimum: one yardstick."""
    names = bench.pick((*TRACES, *GENERATED), quick=(FIRST, *GENERATED), tiny=(FIRST, GENERATED[0]))
    return {
        (name, search.value): WithRho(_searching(scenario, search), alone=scenario)
        for name in names
        for scenario in [scenario_of(bench, name)]
        for search in SEARCHES
    }


def _searching(scenario: Scenario, search: FitSearch) -> Scenario:
    rules = replace(scenario.conditions.fidelity, fit_search=search)
    return replace(scenario, conditions=replace(scenario.conditions, fidelity=rules))


def _figures(run: Observation) -> Mapping[str, float]:
    rho = run.rho[FairnessRule.MEAN_OF_RATIOS.value].values()
    own = {"mean_rho": fmean(rho), "unfair_percent": 100 * run.figures["unfair_fraction"]}
    return {**run.figures, **own}


def _shown(bench: Bench, outcomes: Outcomes) -> Shown:
    names = firsts(outcomes)
    figures = {label: _figures(of(outcomes, *label)) for label in outcomes}
    rows = [
        Row((name, search.value), title, [figures[name, search.value][figure]])
        for name in names
        for search in SEARCHES
        for figure, title in MEASURES.items()
    ]

    def change(name: str, figure: str) -> float:
        return difference(
            figures[name, FitSearch.MINIMUM.value][figure],
            figures[name, FitSearch.PUBLISHED.value][figure],
        )

    def mean(of_names: list[str], figure: str) -> str:
        return percent(fmean(change(name, figure) for name in of_names))

    played_traces = [name for name in names if name in TRACES]
    generated = [name for name in names if name in GENERATED]
    return Shown(
        ("jobs", "search"),
        rows,
        why=(
            "With fits at the minimum of their loss instead of where the published search ends: "
            f"traces {mean(played_traces, 'avg_jct_hours')} of JCT and "
            f"{mean(played_traces, 'restarts_per_job')} of restarts on the mean, generated jobs of "
            f"the catalog ({JOBS} within {HOURS:g} h on {CLUSTER}) "
            f"{mean(generated, 'avg_jct_hours')} and {mean(generated, 'restarts_per_job')}. rho of "
            "both is against the job alone with fits at their minimum."
        ),
        figure=grouped_bars(
            names,
            {
                search.value: [
                    Estimate(figures[name, search.value]["avg_jct_hours"]) for name in names
                ]
                for search in SEARCHES
            },
            x="Jobs",
            y="Average JCT (hours), by the search of fits",
        ),
    )


ITEMS = (
    Item(
        "fits",
        "What the search of fits alone changes under `paper`",
        _shown,
        runs=_runs,
        needs=needs(*TRACES),
        is_of_published_alone=True,
    ),
)
