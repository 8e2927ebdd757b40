"""The simulations of PAL's evaluation: clusters, placers, and one scenario for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from maat.papers.bench import Bench
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.simulation.variability import PAPER_VARIABILITY
from maat.vocabulary import ScoreDraw
from maat.workloads.workloads import Workload

SIMULATED = "v100=16x4"  # section IV-B: 64 GPUs, scores of Longhorn
TESTBED = "rtx5000=16x4"  # section IV-A: 64 GPUs of Frontera
BASELINE = "Tiresias"
PLACERS = {  # section IV-A1, by the names of figure 11
    "Random": "random",
    "Random-Sticky": "random-sticky",
    "Gandiva": "packed",
    BASELINE: "packed-sticky",
    "PM-First": "pm-first",
    "PAL": "pal",
}
COMPARED = (BASELINE, "PM-First", "PAL")


PUBLISHED_DRAW = "published draw"


def published_rules() -> Fidelity:
    return fidelity("pal-artifact")


def other_rows() -> Fidelity:
    """Return the published rules with the draw of another seed."""
    rules = published_rules()
    return replace(rules, variability=replace(rules.variability, draw_seed=None))


def medians() -> Fidelity:
    """Return the published rules on the medians of measured GPUs."""
    rules = other_rows()
    return replace(rules, variability=replace(rules.variability, draw=ScoreDraw.MEDIANS))


def papers_medians() -> Fidelity:
    """Return the rules with the paper's classes and bins too."""
    return replace(published_rules(), variability=PAPER_VARIABILITY, placer_parameters={})


# how GPUs get their scores -> rules
SCORES: Mapping[str, Callable[[], Fidelity]] = {
    PUBLISHED_DRAW: published_rules,
    "single measurements, other seeds": other_rows,
    "medians": medians,
    "medians, the paper's classes and bins": papers_medians,
}


def scenario(
    bench: Bench,
    workload: Workload,
    placer: str,
    *,
    policy: str = "fifo",
    cluster: str = SIMULATED,
    penalty: float | None = None,
    scores: str = PUBLISHED_DRAW,
    seed: int = 0,
) -> Scenario:
    """Return a simulation by the rules of the published code; `placer`: a name of PLACERS.

    `penalty`: across nodes, of every model; None: each model's own. `scores`: a name of SCORES.
    """
    parsed = Cluster.parse(cluster)
    return Scenario(
        workload,
        shipped_models(),
        parsed,
        policy=policy,
        placer=PLACERS[placer],
        conditions=Conditions(
            fidelity=SCORES[scores](),
            variability=bench.variability(*parsed.type_names),
            locality_penalties={}
            if penalty is None
            else dict.fromkeys(sorted(workload.models), penalty),
        ),
        seed=seed,
    )


def sia_philly(bench: Bench) -> Mapping[str, Workload]:
    """Return the Sia-Philly traces that are there, of eight; or one's own trace alone."""
    own = bench.own_trace(shipped_models())
    if own is not None:
        return {own.name: own}
    there = [n for n in range(1, 9) if bench.data.has("pal trace {}", f"workload-{n}")]
    return {
        f"workload {n}": bench.pal_trace(f"workload-{n}", shipped_models())
        for n in bench.pick(there, quick=there[:1])
    }
