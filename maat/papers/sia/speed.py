"""Sia section 5.6: how long a policy takes, at 64 GPUs and up to 2,048 (figure 9)."""

from __future__ import annotations

import numpy as np

from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.papers.bench import Bench
from maat.papers.items import Item, Label, Outcomes, Published, Row, Run, Runs, Shown
from maat.papers.sia.helios import helios_runs
from maat.papers.sia.runs import THREE, USES, of, scenario

# section 5.6: milliseconds, median and 95th percentile
_PUBLISHED = {"Sia": (96.0, 426.0), "Pollux": (2200.0, 4800.0), "Gavel+TJ": (13.0, 28.0)}
MACHINE = "CPU time of this machine in one process; the paper's machine is not named"


def _seconds(outcomes: Outcomes, *label: str) -> list[float]:
    """Return the policy's CPU seconds of every round of the runs whose label begins so."""
    return [
        seconds
        for key, run in outcomes.items()
        if key[: len(label)] == label
        for seconds in run.policy_seconds
    ]


def _overhead(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = []
    for name, (median, high) in _PUBLISHED.items():
        seconds = _seconds(outcomes, "Helios", name)
        rows.append(Row((name,), "median, ms", [1000 * float(np.median(seconds))], median))
        rows.append(
            Row((name,), "95th percentile, ms", [1000 * float(np.percentile(seconds, 95))], high)
        )
    return Shown(
        ("policy",),
        rows,
        why=f"{MACHINE}; Sia's programme is solved by prices with a certified gap, not by GLPK.",
    )


# ---- figure 9

_SIZES = {
    1: "rate_20",
    2: "scale_2x",
    4: "scale_4x",
    8: "scale_8x",
    16: "scale_16x",
    32: "scale_32x",
}
_MOST_OF_POLLUX = 4  # x 64 GPUs: beyond, its search takes hours of CPU


def _sizes_runs(bench: Bench) -> Runs:
    models = bench.sia_models()
    factors = bench.pick(tuple(_SIZES), quick=(1, 2), tiny=(1, 2))
    runs: dict[Label, Run] = {}
    for factor in factors:
        workload = bench.sia_scaled(_SIZES[factor], models, jobs=160 * factor, seed=factor)
        for name in THREE:
            if name == "Pollux" and factor > bench.pick(_MOST_OF_POLLUX, quick=1):
                continue
            runs[name, str(64 * factor)] = scenario(bench, workload, name, nodes=factor)
    return runs


def _sizes(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = []
    drawn: dict[str, list[tuple[float, Estimate]]] = {}
    for name, gpus in outcomes:
        seconds = of(outcomes, name, gpus).policy_seconds
        low, median, high = (float(np.percentile(seconds, at)) for at in (25, 50, 75))
        published = Published(most=1.0) if (name, gpus) == ("Sia", "2048") else None
        rows.append(Row((name, gpus), "median, s", [median], published))
        rows.append(Row((name, gpus), "75th percentile, s", [high]))
        drawn.setdefault(name, []).append((float(gpus), Estimate(median, low, high)))
    last = max((int(gpus) for name, gpus in outcomes if name == "Pollux"), default=0)
    if last:
        both = [float(np.median(of(outcomes, n, str(last)).policy_seconds)) for n in THREE[:2]]
        rows.append(Row(("Pollux", str(last)), "median / Sia's", [both[1] / both[0]], 100.0))
    return Shown(
        ("policy", "GPUs"),
        rows,
        why=(
            f"{MACHINE}; our largest cluster has {max(int(gpus) for _, gpus in outcomes)} GPUs, "
            f"and Pollux runs up to {last}, since its search takes hours of CPU beyond."
        ),
        figure=lines(
            drawn,
            x="GPUs of the cluster",
            y="Policy seconds a round",
            ranges="whiskers",
            log_x=True,
            log_y=True,
        ),
    )


ITEMS = (
    Item(
        "sec-5.6",
        "Policy time of a round at 64 GPUs, Helios traces",
        _overhead,
        runs=helios_runs,
        uses=(USES[0], USES[2]),
        cpu_minutes=(0.7, None),
        whole_runs=9,
    ),
    Item(
        "fig-9",
        "Policy time of a round by cluster size, Helios traces of proportional size",
        _sizes,
        runs=_sizes_runs,
        uses=(USES[0], "sia trace {}/scale/scale_2x/workload-1"),
        cpu_minutes=(1.0, None),
        whole_runs=15,
    ),
)
