"""`python -m benchmarks.sharing`: plays and prints docs/sharing.md's tables.

Continues where it was stopped; `--tables` plays nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

from benchmarks.page import markdown
from benchmarks.sharing.decisions import decisions_table
from benchmarks.sharing.runs import (
    CONTENDERS,
    ELASTIC,
    SIZES,
    XIS,
    Outcome,
    Outcomes,
    Run,
    as_row,
    from_row,
    play,
    wanted,
)

PAPER_ORDER = ("SJF-BSBF", "SJF-FFS", "SJF", "Tiresias", "FIFO")
SHARING = ("SJF-FFS", "SJF-BSBF as printed", "SJF-BSBF")
PUBLISHED_JCT = {
    240: {
        "FIFO": "2.34",
        "Tiresias": "1.51",
        "SJF": "1.25",
        "SJF-FFS": "1.23",
        "SJF-BSBF as printed": "1.01",
    },
    480: {
        "FIFO": "7.52",
        "Tiresias": "5.09",
        "SJF": "2.55",
        "SJF-FFS": "1.89",
        "SJF-BSBF as printed": "1.57",
    },
}
PUBLISHED_POLLUX = {
    240: ("1.04", "1.96", "0.91", "1.00", "1.21", "0.97"),
    480: ("4.69", "6.03", "4.51", "4.41", "5.03", "4.31"),
}
PARTS = ("jct", "jct_large", "jct_small", "queueing", "queueing_large", "queueing_small")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing", description=__doc__)
    parser.add_argument(
        "--rows",
        type=Path,
        default=Path("sharing-runs.jsonl"),
        help="where each run's figures are kept (default %(default)s)",
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="at most so many at a time (default %(default)s)"
    )
    parser.add_argument(
        "--tables", action="store_true", help="only print the tables of the runs that are there"
    )
    options = parser.parse_args(arguments)
    found = dict(read(options.rows))
    if not options.tables:
        missing = [run for run in wanted() if run not in found]
        found |= dict(play_all(missing, options.rows, processes=options.processes))
    print("\n\n".join(tables(found)))
    return 0


def read(rows: Path) -> Iterable[tuple[Run, Outcome]]:
    """Return the runs that an earlier call stored."""
    lines = rows.read_text("utf-8").splitlines() if rows.exists() else []
    return [from_row(json.loads(line)) for line in lines]


def play_all(runs: Sequence[Run], rows: Path, *, processes: int) -> Iterable[tuple[Run, Outcome]]:
    with ProcessPoolExecutor(processes) as pool, rows.open("a", encoding="utf-8") as file:
        for run, outcome in zip(runs, pool.map(play, runs), strict=True):
            print(json.dumps(as_row(run, outcome)), file=file, flush=True)
            print(f"{run}: JCT {outcome.jct:.3f} h", file=sys.stderr)
            yield run, outcome


def tables(found: Outcomes) -> list[str]:
    """Write the tables as Markdown.

    First averages and order for each number of jobs, then the constants, then the cases in which
    SJF-FFS falls behind SJF.
    """
    sizes = [
        text
        for jobs in SIZES
        if (seeds := _complete(found, jobs))
        for text in (_averages(found, jobs, seeds), _order(found, jobs, seeds))
    ]
    head, rows = decisions_table(found)
    elastic = [text for jobs in SIZES if (text := _elastic(found, jobs))]
    return [*sizes, *elastic, *_constants(found), *([markdown(head, rows)] if rows else [])]


def _complete(found: Outcomes, jobs: int) -> list[int]:
    """Return the seeds that every policy has played with the synthetic table."""
    return sorted(
        {
            run.seed
            for run in found
            if all(Run(name, jobs, run.seed) in found for name in CONTENDERS)
        }
    )


def _averages(found: Outcomes, jobs: int, seeds: Sequence[int]) -> str:
    head = ("policy", "JCT", "large", "small", "queueing", "large", "small", "JCT published")
    rows = [
        (
            name,
            *(_mean([getattr(found[Run(name, jobs, s)], part) for s in seeds]) for part in PARTS),
            PUBLISHED_JCT[jobs].get(name, "-"),
        )
        for name in CONTENDERS
    ]
    return f"{jobs} jobs, hours, mean over {len(seeds)} seeds:\n\n{markdown(head, rows)}"


def _elastic(found: Outcomes, jobs: int) -> str:
    """Write Pollux beside its published row, and SJF-BSBF on the same seeds if they were played."""
    seeds = sorted(
        {run.seed for run in found if all(Run(name, jobs, run.seed) in found for name in ELASTIC)}
    )
    if not seeds:
        return ""
    names = [
        name
        for name in (*ELASTIC, "SJF-BSBF")
        if all(Run(name, jobs, seed) in found for seed in seeds)
    ]
    rows = [
        (
            name,
            *(_mean([getattr(found[Run(name, jobs, s)], part) for s in seeds]) for part in PARTS),
        )
        for name in names
    ]
    head = (f"{jobs} jobs", "JCT", "large", "small", "queueing", "large", "small")
    table = markdown(head, [*rows, ("Pollux, published", *PUBLISHED_POLLUX[jobs])])
    return f"{jobs} jobs, hours, mean over {len(seeds)} seeds:\n\n{table}"


def _order(found: Outcomes, jobs: int, seeds: Sequence[int]) -> str:
    """Count the seeds in which each step of the published order holds.

    BSBF <= FFS allows equality.
    """

    def holds(better: str, worse: str, seed: int) -> bool:
        a, b = found[Run(better, jobs, seed)].jct, found[Run(worse, jobs, seed)].jct
        return a <= b if worse == "SJF-FFS" else a < b

    steps = list(pairwise(PAPER_ORDER))
    shown = [("SJF-BSBF as printed", "SJF-FFS"), *steps]
    rows = [
        (
            f"{better} before {worse}",
            f"{sum(holds(better, worse, s) for s in seeds)} of {len(seeds)}",
        )
        for better, worse in shown
    ]
    whole = sum(all(holds(better, worse, s) for better, worse in steps) for s in seeds)
    return markdown(
        (f"{jobs} jobs", "seeds in which it holds"),
        [*rows, ("the whole order", f"{whole} of {len(seeds)}")],
    )


def _constants(found: Outcomes) -> list[str]:
    """Compare SJF-BSBF with SJF-FFS by xi.

    First on the cluster itself, then with all its GPUs on one node; SJF, which shares nothing, is
    listed too.
    """
    many = sorted({run.nodes for run in found if run.interference != "synthetic"}, reverse=True)
    return [text for nodes in many if (text := _by_xi(found, nodes))]


def _by_xi(found: Outcomes, nodes: int) -> str:
    rows = []
    for xi in XIS:
        by_name = [
            {
                run.seed: o.jct
                for run, o in found.items()
                if run == Run(name, SIZES[0], run.seed, f"{xi:g}", nodes)
            }
            for name in SHARING
        ]
        seeds = sorted(set.intersection(*(set(by_seed) for by_seed in by_name)))
        if seeds:
            ffs, printed, placed = (
                statistics.mean(by_seed[s] for s in seeds) for by_seed in by_name
            )
            alone = [
                found[run].jct
                for s in seeds
                if (run := Run("SJF", SIZES[0], s, nodes=nodes)) in found
            ]
            sjf = f"{statistics.mean(alone):.3f}" if alone else "-"
            gains = (f"{1 - printed / ffs:.1%}", f"{1 - placed / ffs:.1%}")
            rows.append(
                (
                    f"{xi:g}",
                    sjf,
                    f"{ffs:.3f}",
                    f"{printed:.3f}",
                    f"{placed:.3f}",
                    *gains,
                    str(len(seeds)),
                )
            )
    head = (
        "xi of all pairs",
        "SJF",
        *SHARING,
        "gain over FFS as printed",
        "gain over FFS",
        "seeds",
    )
    return (
        f"{SIZES[0]} jobs, {nodes} node{'s' if nodes > 1 else ''}, average JCT in "
        f"hours:\n\n{markdown(head, rows)}"
        if rows
        else ""
    )


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.2f}"
