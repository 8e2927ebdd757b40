"""What a least stay and a most of moves an hour cost: a part of docs/comparison.md.

`python -m benchmarks.stability` prints it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.page import markdown
from maat.laboratory.setup import GivenTrace, Setup
from maat.scheduling.cluster import Cluster
from maat.scheduling.stability import NO_BOUNDS, Stability
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.record import SimulationResult
from maat.simulation.world_models import measured_models
from maat.workloads.reading import read_workload

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
TRACE = "sia-artifact/workloads/philly/workload-1.csv"
POLICY = "sia"
BOUNDS = {
    "none": NO_BOUNDS,
    "least stay 10 min": Stability(least_stay_seconds=600.0),
    "least stay 30 min": Stability(least_stay_seconds=1800.0),
    "4 moves an hour": Stability(most_moves_per_hour=4),
    "2 moves an hour": Stability(most_moves_per_hour=2),
}
COLUMNS: Sequence[tuple[str, str, int]] = (
    ("avg_jct_hours", "mean JCT, h", 3),
    ("median_jct_hours", "median JCT, h", 3),
    ("p99_jct_hours", "p99 JCT, h", 2),
    ("gpu_hours_per_job", "GPU-hours per job", 2),
    ("restarts_per_job", "restarts per job", 2),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.stability", description=__doc__)
    parser.parse_args(arguments)
    data = os.environ.get("MAAT_DATA")
    if data is None:
        print("MAAT_DATA names no folder: trace and profiles are public data.", file=sys.stderr)
        return 2
    print(section(Path(data)))
    return 0


def section(data: Path) -> str:
    """Return the text and the table of the page."""
    rows = [[name, *_figures(played(data, bounds))] for name, bounds in BOUNDS.items()]
    return "\n\n".join(
        (
            "## What it costs to move jobs less often",
            "Sia on the same trace, where a job stays on its GPUs for a least time, or is moved "
            "at most so often in an hour (`--least-stay`, `--most-moves-per-hour`). One run each.",
            markdown(["bound", *(heading for _, heading, _ in COLUMNS)], rows),
        )
    )


def played(data: Path, bounds: Stability) -> SimulationResult:
    models = measured_models(data / "sia-artifact/profiles")
    setup = Setup(
        trace=GivenTrace(read_workload(data / TRACE, known_models=models)),
        models=models,
        cluster=Cluster.parse(CLUSTER),
        policy=POLICY,
        conditions=Conditions(stability=bounds),
    )
    return simulate(setup.scenario())


def _figures(result: SimulationResult) -> list[str]:
    return [f"{getattr(result.metrics, field):.{digits}f}" for field, _, digits in COLUMNS]


if __name__ == "__main__":
    sys.exit(main())
