"""Sia sections 5.2 and 5.5 on Helios traces: GPU-hours, load, fairness (figures 6 to 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from maat.colours import gpu_colour
from maat.figures.bars import stacked_bars
from maat.figures.data import Distribution, Estimate
from maat.figures.distributions import cdf
from maat.figures.lines import lines
from maat.figures.panels import side_by_side
from maat.papers.bench import Bench
from maat.papers.gpu_hours import gpu_hours_by_type
from maat.papers.items import Item, Label, Outcomes, Published, Row, Run, Runs, Shown, WithRho
from maat.papers.sia.policies import PUBLIC
from maat.papers.sia.runs import (
    THREE,
    USES,
    each,
    firsts,
    of,
    scenario,
)
from maat.simulation.scenario import Scenario

# ---- figure 6


def helios_runs(bench: Bench, names: Sequence[str] = THREE) -> Mapping[Label, Scenario]:
    models = bench.sia_models()
    return {
        ("Helios", name, trace): scenario(bench, workload, name)
        for trace, workload in bench.sia_traces("saturn", models).items()
        for name in names
    }


def _bert_elsewhere(outcomes: Outcomes) -> str:
    """Return in words how many BERT jobs Sia had on other types than a100 for a time."""
    jobs: set[tuple[str, ...]] = set()
    moved: set[tuple[str, ...]] = set()
    for label, run in outcomes.items():
        if label[1] == "Sia":
            model_of = dict(zip(run.jobs["name"], run.jobs["model"], strict=True))
            jobs |= {(*label, str(job)) for job, model in model_of.items() if model == "bert"}
            for job, kind in zip(run.spans["job"], run.spans["gpu_type"], strict=True):
                if model_of[job] == "bert" and kind not in (None, "a100"):
                    moved.add((*label, str(job)))
    return f"{len(moved)} of {len(jobs)} BERT jobs were on another type for a time"


def _figure_6(bench: Bench, outcomes: Outcomes) -> Shown:
    rows: list[Row] = []
    names: list[str] = []
    parts: dict[str, list[float]] = {kind: [] for kind in ("t4", "rtx", "a100")}
    by_policy = {
        name: gpu_hours_by_type(run for label, run in outcomes.items() if label[1] == name)
        for name in THREE
    }
    for model in by_policy["Sia"]:
        least = min(
            sum(hours.get(model, {}).values()) or float("inf") for hours in by_policy.values()
        )
        for name, hours in by_policy.items():
            of_model = hours.get(model, {})
            names.append(f"{model}, {name}")
            for kind, values in parts.items():
                values.append(of_model.get(kind, 0.0) / least)
                rows.append(
                    Row((model, name), f"GPU-hours per job on {kind}", [of_model.get(kind, 0.0)])
                )
    bert = by_policy["Sia"].get("bert", {})
    if bert:
        share = 100 * bert.get("a100", 0.0) / sum(bert.values())
        rows.append(Row(("bert", "Sia"), "share on a100, %", [share], Published(least=90)))
    return Shown(
        ("model", "policy"),
        rows,
        why=(
            "The paper draws bars without numbers, and says that Sia has BERT almost exclusively "
            "on a100 (taken as 90 % and more here) and DeepSpeech2 rather on rtx; "
            f"{_bert_elsewhere(outcomes)} under our fits, which are of few samples at first."
        ),
        figure=stacked_bars(
            names,
            parts,
            x="GPU-hours per job / the least of the three",
            y="Model, policy",
            colours={kind: gpu_colour(kind) for kind in parts},
        ),
    )


# ---- figure 7


def _figure_7_runs(bench: Bench) -> Runs:
    models = bench.sia_models()
    rates = bench.pick((10, 20, 30, 40, 50), quick=(10, 30), tiny=(10, 30))
    runs: dict[Label, Run] = {}
    for rate in rates:
        workload = bench.sia_scaled(f"rate_{rate}", models, jobs=8 * rate, seed=rate)
        for name in THREE:
            runs[name, str(rate)] = scenario(bench, workload, name)
    return runs


def _figure_7(bench: Bench, outcomes: Outcomes) -> Shown:
    rates = firsts(outcomes, 1)
    jct = {(n, r): of(outcomes, n, r).figures["avg_jct_hours"] for n in THREE for r in rates}
    rows = [Row((n, r), "average JCT, h", [jct[n, r]]) for n in THREE for r in rates]
    rows += [
        Row(
            ("Sia", r),
            "average JCT, % of Pollux",
            [100 * jct["Sia", r] / jct["Pollux", r]],
            Published(35, 50),
        )
        for r in rates
    ]
    drawn = {n: [(float(r), Estimate(jct[n, r])) for r in rates] for n in THREE}
    return Shown(
        ("policy", "jobs per hour"),
        rows,
        why=(
            "Each rate is one trace here; our Pollux searches better than the published one "
            "(docs/pollux.md), which brings it nearer to Sia."
        ),
        figure=lines(drawn, x="Jobs submitted per hour", y="Average JCT (hours)"),
    )


# ---- figure 8

_FOUR = ("Sia", "Pollux", "Gavel+TJ", "Shockwave+TJ")
_FIGURE_8: Mapping[
    str, tuple[float, float | Published]
] = {  # worst rho, jobs with rho above 1 in %
    "Sia": (1.2, Published(most=0.3)),
    "Pollux": (4.6, 28.0),
    "Gavel+TJ": (27.8, 15.0),
    "Shockwave+TJ": (3.3, 14.0),
}


def _figure_8_runs(bench: Bench) -> Runs:
    return {label: WithRho(run) for label, run in helios_runs(bench, _FOUR).items()}


def _figure_8(bench: Bench, outcomes: Outcomes) -> Shown:
    rows = []
    for name, (worst, unfair) in _FIGURE_8.items():
        rows.append(Row((name,), "worst rho", each(outcomes, "worst_rho", "Helios", name), worst))
        shares = [100 * s for s in each(outcomes, "unfair_fraction", "Helios", name)]
        rows.append(Row((name,), "jobs with rho above 1, %", shares, unfair))
    runs = {name: [run for label, run in outcomes.items() if label[1] == name] for name in _FOUR}
    rho = {
        name: Distribution.of(r for run in of_name for r in run.rho["mean-of-ratios"].values())
        for name, of_name in runs.items()
    }
    jct = {
        name: Distribution.of(hour for run in of_name for hour in run.jct_hours())
        for name, of_name in runs.items()
    }
    return Shown(
        ("policy",),
        rows,
        why=(
            "rho is by eq. 6 with jobs alone on N / N_avg GPUs of each type, where each may adapt, "
            "tuned ones too: the paper does not say what a job may do alone, which decides how "
            f"many have rho above 1. {PUBLIC}, and a worst value is of one job of one trace."
        ),
        figure=side_by_side(
            cdf(rho, x="Finish-time fairness rho", log_x=True),
            cdf(jct, x="JCT (hours)", log_x=True),
        ),
    )


ITEMS = (
    Item(
        "fig-6",
        "GPU-hours of each model by GPU type and policy, Helios traces",
        _figure_6,
        runs=helios_runs,
        uses=(USES[0], USES[2]),
        cpu_minutes=(0.7, None),
        whole_runs=9,
    ),
    Item(
        "fig-7",
        "Average JCT against the rate of submissions, Helios traces",
        _figure_7,
        runs=_figure_7_runs,
        uses=(USES[0], "sia trace {}/scale/rate_10/workload-1"),
        cpu_minutes=(1.9, None),
        whole_runs=15,
    ),
    Item(
        "fig-8",
        "Finish-time fairness and JCT of four policies, Helios traces",
        _figure_8,
        runs=_figure_8_runs,
        uses=(USES[0], USES[2]),
        cpu_minutes=(1.2, None),
        whole_runs=12,
    ),
)
