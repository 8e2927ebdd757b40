"""`python -m benchmarks.comparison`: every policy on one trace, compared.

Writes docs/comparison.md and its picture.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import stability
from benchmarks.page import markdown
from maat.laboratory.comparison import Contestant, Outcome, report
from maat.laboratory.comparison_run import ComparisonPlan, run_comparison
from maat.laboratory.setup import GivenTrace, Trace
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.interference import interference
from maat.simulation.world_models import measured_models
from maat.workloads.reading import read_workload

CLUSTER, TRACE = stability.CLUSTER, stability.TRACE
SHARING = ("sjf-ffs", "sjf-bsbf")
BASELINE = "sia"
PAGE, PICTURE = Path("docs/comparison.md"), Path("docs/images/comparison.png")
COLUMNS: Sequence[tuple[str, str, int]] = (
    ("avg_jct_hours", "mean JCT, h", 3),
    ("p99_jct_hours", "p99 JCT, h", 2),
    ("makespan_hours", "makespan, h", 2),
    ("gpu_hours_per_job", "GPU-hours per job", 2),
    ("restarts_per_job", "restarts per job", 2),
    ("worst_rho", "worst rho", 2),
    ("unfair_fraction", "share with rho > 1", 3),
    ("unfinished", "unfinished", 0),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.comparison", description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--cache", type=Path, help="folder of results: what stands there is not simulated again"
    )
    parser.add_argument(
        "--chromium",
        default=shutil.which("chromium"),
        help="browser that draws the picture; by default chromium on the PATH, or Playwright's own",
    )
    options = parser.parse_args(arguments)
    data = os.environ.get("MAAT_DATA")
    if data is None:
        print(
            "MAAT_DATA names no folder: the trace and the profiles are public data that this "
            "reads.",
            file=sys.stderr,
        )
        return 2
    found = report(outcomes(Path(data), options), Contestant(BASELINE, suiting_placer(BASELINE)))
    text = f"{page(found)}\n{stability.section(Path(data))}\n"
    PAGE.write_text(text, encoding="utf-8")
    draw(found, options.chromium)
    print(f"{PAGE} and {PICTURE} are written.")
    return 0


def outcomes(data: Path, options: argparse.Namespace) -> tuple[Outcome, ...]:
    """Return every policy with its own placer.

    Policies that share GPUs may put two jobs on one, under the declared synthetic interference.
    """
    models = measured_models(data / "sia-artifact/profiles")
    trace = Trace("philly-1", GivenTrace(read_workload(data / TRACE, known_models=models)))
    alone = Cluster.parse(CLUSTER)
    shared, losing = (
        replace(alone, jobs_per_gpu=2),
        Conditions(interference=interference("synthetic")),
    )
    others = [name for name in POLICIES.names if name not in SHARING]
    found: tuple[Outcome, ...] = ()
    for cluster, conditions, names in ((alone, Conditions(), others), (shared, losing, SHARING)):
        contestants = tuple(Contestant(name, suiting_placer(name)) for name in names)
        plan = ComparisonPlan(models, cluster, contestants, (trace,), (0,), conditions)
        found += run_comparison(
            plan,
            workers=options.workers,
            cache=options.cache,
            on_progress=lambda at: print(f"{at.done} of {at.total}", flush=True),
        )
    return found


def page(found: Mapping[str, Any]) -> str:
    baseline = found["contestants"][found["baseline"]]["name"]
    parts = (
        "# All policies on one trace",
        "Written by `python -m benchmarks.comparison`: philly-1 (160 jobs) with the measured "
        f"profiles on `{CLUSTER}`, fidelity `paper`, seed 0, "
        "each policy with the placer that suits it. Jobs of policies that adapt nothing run with "
        "the GPU count and batch size of the trace. SJF-FFS "
        "and SJF-BSBF may put two jobs on a GPU; what these lose is a declared synthetic table, "
        "for nobody measured these models together.",
        "![JCT relative to Sia](images/comparison.png)",
        _means(found),
        f"Job by job against {baseline}: mean of the difference in JCT, geometric mean of the "
        "ratio, each with its 95 % interval over the jobs of "
        "this one run: it says nothing of other traces. `maat compare` with several traces does. "
        "Fewer than ten jobs of one run would tell nobody "
        "apart, and the same jobs under two names are refused as a second trace. A policy meets "
        "itself under another parameter with "
        "`--policy sia,soft=sia --set soft.p=-1`.",
        _differences(found),
    )
    return "\n\n".join(parts) + "\n"


def _means(found: Mapping[str, Any]) -> str:
    rows = [
        [
            contestant["name"],
            *(_spread(contestant["figures"].get(field), digits) for field, _, digits in COLUMNS),
        ]
        for contestant in found["contestants"]
    ]
    return markdown(["policy + placer", *(heading for _, heading, _ in COLUMNS)], rows)


def _differences(found: Mapping[str, Any]) -> str:
    names = [contestant["name"] for contestant in found["contestants"]]
    rows = [
        [
            names[row["contestant"]],
            _interval(row["difference_hours"], "+.3f"),
            _interval(row["ratio"], ".3f"),
            f"{row['sooner']:.0%}",
            str(row["left_out"]),
            row["verdict"],
        ]
        for row in found["paired"]
    ]
    return markdown(
        [
            "policy + placer",
            "JCT difference, h",
            "JCT ratio",
            "jobs sooner",
            "jobs left out",
            "mean JCT is",
        ],
        rows,
    )


def _spread(spread: Mapping[str, Any] | None, digits: int) -> str:
    if spread is None:
        return "-"
    mean = f"{spread['mean']:.{digits}f}"
    return mean if not spread["deviation"] else f"{mean} ± {spread['deviation']:.{digits}f}"


def _interval(interval: Mapping[str, Any], form: str) -> str:
    if interval["low"] is None:
        return f"{interval['estimate']:{form}}"
    return f"{interval['estimate']:{form}} [{interval['low']:{form}}, {interval['high']:{form}}]"


def draw(found: Mapping[str, Any], chromium: str | None) -> None:
    """Draw the figure of the Simulate page as a picture."""
    from playwright.sync_api import sync_playwright

    from frontend.figures.contest import ratio_figure

    figure = ratio_figure(found, scheme="light")
    figure.update_layout(width=980)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        path = Path(folder) / "figure.html"
        figure.write_html(path, include_plotlyjs=True)
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(
            viewport={"width": 1000, "height": int(figure.layout.height) + 20},
            device_scale_factor=2,
        )
        tab.goto(path.as_uri())
        tab.locator(".js-plotly-plot").screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
