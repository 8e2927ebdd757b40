"""`python -m benchmarks.variability`: PAL's placers and its published simulator.

Also runs them on medians instead of its draw. Writes the tables of docs/variability.md between
their marks. Measures no speed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.page import markdown, write_between
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.simulation.variability import PAPER_VARIABILITY, Variability, read_variability
from maat.vocabulary import ScoreDraw
from maat.workloads.reading import read_workload
from maat.workloads.workloads import Workload

OUTPUT = Path(__file__).parents[1] / "docs" / "variability.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
CLUSTER, WORKLOADS = "v100=16x4", (1, 2, 3)
BASELINE, COMPARED = "packed-sticky", ("pal", "pm-first")
PLACERS = (BASELINE, "packed", "random-sticky", "random", *COMPARED)
PENALTIES = (1.0, 1.7, 3.0)
ROW_SEEDS, MEDIAN_SEEDS = tuple(range(5)), tuple(range(5))

# hal-uw/blox-pal, branch artifact, workload 1: average JCT in seconds. pal: with the libraries that
# its requirements pin, which decide which of equally good nodes it takes; pm-first: with newer
# ones, with which one job of the 160 ended one round later.
PUBLISHED: Mapping[str, float] = {
    "packed-sticky": 30_244,
    "pal": 25_300.74,
    "pm-first": 25_467,
    "packed": 30_035,
}


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


SETTINGS: Mapping[str, tuple[Callable[[], Fidelity], Sequence[int]]] = {
    "published draw (seed 42)": (published_rules, (0,)),
    "single measurements, other seeds": (other_rows, ROW_SEEDS),
    "medians": (medians, MEDIAN_SEEDS),
    "medians, the paper's classes and bins": (papers_medians, MEDIAN_SEEDS),
}
FIRST = next(iter(SETTINGS))


@dataclass(frozen=True, slots=True)
class Run:
    """A simulation: a trace and a placer under a setting and a seed.

    It may have another penalty across nodes.
    """

    workload: int
    placer: str
    setting: str = FIRST
    seed: int = 0
    penalty: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds, and whether every job ended."""

    average_jct: float
    makespan: float
    rounds: int
    complete: bool


def wanted(*, quick: bool) -> list[Run]:
    """Order the longest first, so that two processes end together.

    Quick: only the published figures.
    """
    runs = {
        Run(workload, placer): None
        for workload in WORKLOADS[: 1 if quick else None]
        for placer in PLACERS
    }
    if not quick:
        every = [(workload, placer) for workload in WORKLOADS for placer in (BASELINE, *COMPARED)]
        runs |= {
            Run(w, p, name, seed): None
            for w, p in every
            for name, (_, seeds) in SETTINGS.items()
            for seed in seeds
        }
        runs |= {Run(w, p, penalty=penalty): None for w, p in every for penalty in PENALTIES}
    return sorted(runs, key=lambda run: (run.workload != 2, run.workload != 3))


@cache
def _trace(data: Path, number: int) -> Workload:
    return read_workload(data / "traces" / f"workload-{number}.csv", known_models=shipped_models())


@cache
def _measured(data: Path) -> Variability:
    return read_variability(data / "variability", gpu_types=("v100",))


def play(run: Run, data: Path) -> Outcome:
    workload, rules = _trace(data, run.workload), SETTINGS[run.setting][0]()
    penalties = {} if run.penalty is None else dict.fromkeys(sorted(workload.models), run.penalty)
    scenario = Scenario(
        workload,
        shipped_models(),
        Cluster.parse(CLUSTER),
        policy="fifo",
        placer=run.placer,
        conditions=Conditions(
            fidelity=rules, variability=_measured(data), locality_penalties=penalties
        ),
        seed=run.seed,
    )
    result = simulate(scenario)
    m = result.metrics
    return Outcome(m.avg_jct_hours * 3600, m.makespan_hours * 3600, result.rounds, result.complete)


def play_all(runs: Sequence[Run], data: Path, *, processes: int) -> Mapping[Run, Outcome]:
    with ProcessPoolExecutor(processes) as pool:
        found = {}
        for run, outcome in zip(runs, pool.map(play, runs, [data] * len(runs)), strict=True):
            print(
                f"{len(found) + 1}/{len(runs)} {run}: {outcome.average_jct:.0f} s", file=sys.stderr
            )
            found[run] = outcome
    return found


# ---- tables


def tables(found: Mapping[Run, Outcome], *, quick: bool) -> str:
    parts = [_published(found)]
    if not quick:
        parts += [_settings(found), _locality(found)]
    return "\n\n".join(parts)


def _published(found: Mapping[Run, Outcome]) -> str:
    rows = []
    for placer in PLACERS:
        outcome, theirs = found[Run(1, placer)], PUBLISHED.get(placer)
        beside = (
            ("-", "-")
            if theirs is None
            else (f"{theirs:,.0f}", f"{outcome.average_jct / theirs - 1:+.3%}")
        )
        rows.append(
            (
                placer,
                f"{outcome.average_jct:,.0f}",
                *beside,
                f"{outcome.makespan:,.0f}",
                outcome.rounds,
                "yes" if outcome.complete else "no",
            )
        )
    heading = (
        "placer",
        "average JCT, s",
        "published",
        "deviation",
        "makespan, s",
        "rounds",
        "all jobs ended",
    )
    return f"### Workload 1 beside the published simulator\n\n{markdown(heading, rows)}"


def _settings(found: Mapping[Run, Outcome]) -> str:
    """Return average JCT relative to packed-sticky on the same scores.

    It is the mean over seeds, with the sample standard deviation.
    """
    rows = [
        (
            name,
            placer,
            *(_spread(_gains(found, name, placer, [workload])) for workload in WORKLOADS),
            _spread(_gains(found, name, placer, WORKLOADS)),
        )
        for name in SETTINGS
        for placer in COMPARED
    ]
    heading = (
        "scores",
        "placer",
        *(f"workload {number}" for number in WORKLOADS),
        "geometric mean",
    )
    title = "### Change of the average JCT against packed-sticky on the same scores"
    return f"{title}\n\n{markdown(heading, rows)}"


def _locality(found: Mapping[Run, Outcome]) -> str:
    rows = [
        (
            f"{penalty:g}",
            *(
                _spread(
                    [_geometric(_ratio(found, Run(w, placer, penalty=penalty)) for w in WORKLOADS)]
                )
                for placer in COMPARED
            ),
        )
        for penalty in PENALTIES
    ]
    heading = ("penalty across nodes", *COMPARED)
    title = "### The same by locality penalty, published draw, geometric mean over the workloads"
    return f"{title}\n\n{markdown(heading, rows)}"


def _gains(
    found: Mapping[Run, Outcome], setting: str, placer: str, workloads: Sequence[int]
) -> list[float]:
    """Return one ratio per seed."""
    seeds = SETTINGS[setting][1]
    return [
        _geometric(_ratio(found, Run(workload, placer, setting, seed)) for workload in workloads)
        for seed in seeds
    ]


def _ratio(found: Mapping[Run, Outcome], run: Run) -> float:
    return found[run].average_jct / found[replace(run, placer=BASELINE)].average_jct


def _geometric(ratios: Iterable[float]) -> float:
    return math.exp(fmean(math.log(ratio) for ratio in ratios))


def _spread(ratios: Sequence[float]) -> str:
    mean = f"{fmean(ratios) - 1:+.1%}"
    return mean if len(ratios) == 1 else f"{mean} ± {stdev(ratios):.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.variability", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="workload 1 under the published rules, printed instead of written",
    )
    parser.add_argument("--processes", type=int, default=2, help="simulations at a time")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="the Markdown file whose tables are written"
    )
    options = parser.parse_args(arguments)
    data = os.environ.get("MAAT_DATA")
    if not data:
        parser.error(
            "MAAT_DATA is not set: give the folder that holds pal/traces and pal/variability"
        )
    found = play_all(wanted(quick=options.quick), Path(data, "pal"), processes=options.processes)
    text = tables(found, quick=options.quick)
    if options.quick:
        print(text)
    else:
        write_between(options.output, text, begin=BEGIN, end=END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
