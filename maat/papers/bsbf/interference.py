"""SJF-BSBF figure 6b: the sharing policies by how much jobs on one GPU slow each other.

And what else decides whether sharing at first fit pays: the settings of `variations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.papers.bench import Bench
from maat.papers.bsbf.runs import (
    AS_PRINTED,
    BSBF,
    FFS,
    SIZES,
    UNINFORMED,
    each,
    jobs_of,
    of,
    scenario,
)
from maat.papers.bsbf.variations import DECLARED, SETTINGS, Setting
from maat.papers.items import Item, Label, Outcomes, Published, Row, Run, Runs, Shown
from maat.simulation.interference import Interference

JOBS = SIZES[0]
DRAWN = ("SJF", FFS, AS_PRINTED, BSBF)
ONE_NODE = "t4=1x64"  # on which spreading a job costs nothing
MILD = 1.25  # section VI-C: up to here the two sharing policies do the same
JCT = "average JCT, h"
OF_FFS = "average JCT, % of SJF-FFS's"


def _slowdowns(bench: Bench) -> Sequence[float]:
    return bench.pick(
        (1.0, 1.1, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0),
        quick=(1.0, 1.25, 1.5, 2.0),
        tiny=(1.0, 2.0),
    )


def _seeds(bench: Bench) -> Sequence[int]:
    return bench.pick(range(5), quick=range(2), tiny=range(1))


def _settings(bench: Bench) -> Sequence[str]:
    """Return the settings that are run: quick, none but the declared table."""
    return bench.pick(tuple(SETTINGS), quick=(DECLARED,), tiny=tuple(SETTINGS)[:2])


def _named(xi: float) -> str:
    return f"xi {xi:g}"


def _on_one_node(xi: float) -> str:
    return f"xi {xi:g}, one node"


def _runs(bench: Bench) -> Runs:
    return dict(_labelled(bench))


def _labelled(bench: Bench) -> Iterator[tuple[Label, Run]]:
    for seed in _seeds(bench):
        workload = jobs_of(bench, JOBS, seed)
        for xi in _slowdowns(bench):
            slowed = Interference.constant(xi)
            for name in DRAWN:
                yield (
                    (_named(xi), name, f"{seed}"),
                    scenario(workload, name, interference=slowed, seed=seed),
                )
            for name in DRAWN[1:] if xi in (1.0, MILD) else ():
                yield (
                    (_on_one_node(xi), name, f"{seed}"),
                    scenario(workload, name, interference=slowed, cluster=ONE_NODE, seed=seed),
                )
        for varied in _settings(bench):
            for name in (*DRAWN, UNINFORMED) if varied == DECLARED else ("SJF", FFS):
                yield (varied, name, f"{seed}"), _varied(bench, SETTINGS[varied], name, seed)


def _varied(bench: Bench, setting: Setting, contender: str, seed: int) -> Run:
    return scenario(
        jobs_of(bench, JOBS, seed, setting.shape),
        contender,
        interference=setting.interference,
        models=setting.models,
        seed=seed,
    )


def _shown(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = []
    for varied in dict.fromkeys(label[0] for label in outcomes):
        jct = {
            name: [run.figures["avg_jct_hours"] for run in of(outcomes, varied, name).values()]
            for name in dict.fromkeys(label[1] for label in outcomes if label[0] == varied)
        }
        queueing = {
            name: each(of(outcomes, varied, name).values(), "avg_waiting_hours") for name in jct
        }
        for name, hours in jct.items():
            rows.append(Row((varied, name), JCT, hours))
            rows.append(Row((varied, name), "average queueing, h", queueing[name]))
            if name != FFS:
                share = [100 * a / b for a, b in zip(hours, jct[FFS], strict=True)]
                rows.append(Row((varied, name), OF_FFS, share, _published(varied, name)))
        if varied in SETTINGS:
            rows.append(Row((varied, "-"), "mean xi", [SETTINGS[varied].mean_slowdown]))
    drawn = {
        name: [
            (xi, Estimate.over(each(of(outcomes, _named(xi), name).values(), "avg_jct_hours")))
            for xi in _slowdowns(bench)
        ]
        for name in DRAWN
    }
    return Shown(
        ("varied", "policy"),
        rows,
        why=_why(bench, outcomes),
        figure=lines(
            drawn,
            x="Slowdown of every pair on one GPU (xi)",
            y="Average JCT (hours)",
            ranges="whiskers",
        ),
    )


def _published(varied: str, name: str) -> float | Published | None:
    """Section VI-C: the same up to xi 1.25, 8 to 13 % lower from 1.5 to 2."""
    if name not in (BSBF, AS_PRINTED) or not varied.startswith("xi"):
        return None
    xi = float(varied.split()[1].rstrip(","))
    if xi <= MILD:
        return 100.0
    return Published(87, 92) if xi >= 1.5 else None


def _why(bench: Bench, outcomes: Outcomes) -> str:
    def shares(name: str, xis: Sequence[float]) -> str:
        found = [100 * _mean(outcomes, xi, name) / _mean(outcomes, xi, FFS) for xi in xis]
        return f"{min(found):.0f} to {max(found):.0f} %"

    mild = [xi for xi in _slowdowns(bench) if xi <= MILD]
    severe = [xi for xi in _slowdowns(bench) if xi >= 1.5]
    return (
        "Our jobs are drawn (docs/sharing.md), and spreading a job over nodes costs time, which "
        "the paper's rule does not count: as printed, SJF-BSBF takes "
        f"{shares(AS_PRINTED, mild)} of SJF-FFS's time up to xi {MILD:g} (the paper: 100 %) and "
        f"{shares(AS_PRINTED, severe)} from 1.5 on (87 to 92 %); by placement it takes "
        f"{shares(BSBF, mild)} and {shares(BSBF, severe)}."
    )


def _mean(outcomes: Outcomes, xi: float, name: str) -> float:
    return fmean(each(of(outcomes, _named(xi), name).values(), "avg_jct_hours"))


ITEMS = (
    Item(
        "fig-6b",
        "Average JCT by the slowdown of jobs on one GPU, 240 simulated jobs",
        _shown,
        runs=_runs,
        cpu_minutes=(1.7, None),
        whole_runs=325,
    ),
)
