"""Pollux section 5.3.2: load, interval, interference, what is known before (figure 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from maat.figures.bars import grouped_bars
from maat.figures.data import Estimate
from maat.figures.lines import lines
from maat.figures.panels import side_by_side
from maat.papers.bench import Bench
from maat.papers.items import Item, Label, Outcomes, Published, Row, Run, Runs, Shown
from maat.papers.observation import Observation
from maat.papers.pollux.runs import (
    OPTIMUS,
    POLLUX,
    THREE,
    TIRESIAS,
    USES,
    compared,
    each,
    numbers,
    of,
    published,
    rules,
    scenario,
    shorter,
    traces,
)
from maat.vocabulary import ProfilingMode

HOUR = 3600.0
# Average JCT in seconds of workloads 1 to 8, of the results stored with the paper's artifact; its
# figures have no numbers.
_STORED: Mapping[str, tuple[float, ...]] = {
    POLLUX: (2088.8, 3322.9, 2188.5, 2721.0, 2673.7, 2446.1, 3616.1, 2951.9),
    OPTIMUS: (4087.1, 6913.9, 3944.0, 5967.8, 5656.2, 5301.9, 7290.9, 6293.8),
    TIRESIAS: (2473.7, 5145.0, 3876.3, 3280.3, 3501.0, 3469.7, 5479.9, 5079.7),
}


EIGHT = len(_STORED[POLLUX])
OF_EIGHT = "mean of eight workloads"


def _stored_hours(bench: Bench, name: str = POLLUX) -> float:
    """Return the stored average JCT of the workloads at hand, or of all eight."""
    stored = _STORED[name]
    return _hours(
        fmean(stored[n - 1] for n in numbers(bench)) if published(bench) else fmean(stored)
    )


def _hours(seconds: float) -> float:
    return round(seconds / HOUR, 4)


def _is_of_eight(bench: Bench, load: str = "") -> bool:
    """Return whether what runs are the paper's eight workloads."""
    return published(bench) and len(numbers(bench, load)) == EIGHT


def _of_the_same(
    bench: Bench, of: Label, measure: str, ours: Sequence[float], stored: float
) -> list[Row]:
    """Compare with what is stored of each workload, unless those at hand are others."""
    return _compared(of, measure, ours, stored, is_same=published(bench))


def _of_eight(
    bench: Bench, of: Label, measure: str, ours: Sequence[float], stored: float, *, load: str = ""
) -> list[Row]:
    """Compare with what is stored as a mean of eight workloads, if these eight run."""
    return _compared(of, measure, ours, stored, is_same=_is_of_eight(bench, load))


def _compared(
    of: Label, measure: str, ours: Sequence[float], stored: float, *, is_same: bool
) -> list[Row]:
    """Return one row; of other workloads two, so that nothing is compared with the stored mean."""
    if is_same:
        return [Row(of, measure, ours, stored)]
    return [Row(of, measure, ours), Row(of, f"{measure}: {OF_EIGHT}", [], stored)]


def _stored(bench: Bench, same: str) -> str:
    """Say what is compared. `same`: which values are stored of each workload, not as a mean."""
    if not published(bench):
        return (
            "The paper's figure has no numbers, and what is stored with its artifact is of its "
            "own eight workloads: their means stand in rows of their own, beside generated jobs."
        )
    if _is_of_eight(bench):
        return (
            "The paper's figure has no numbers: published values are those of the results stored "
            "with its artifact, of the same eight workloads."
        )
    return (
        "The paper's figure has no numbers: published values are those of the results stored with "
        f"its artifact. {same}, they are of the same jobs ({', '.join(traces(bench))}); others are "
        "stored as means of eight workloads alone, which the fewer run here are not compared with: "
        "they stand in rows of their own."
    )


# ---- figure 8a: load; stored results at other loads than 1, seconds, means of eight workloads

_LOADS = {"0.5": "-0.5", "1": "", "1.5": "-1.5", "2": "-2.0"}
_FIGURE_8A: Mapping[str, tuple[float, ...]] = {
    POLLUX: (1534.0, 3685.4, 5289.2),
    OPTIMUS: (2395.4, 7234.6, 9721.0),
    TIRESIAS: (2091.5, 6182.3, 10039.5),
}


def _load_runs(bench: Bench) -> Runs:
    runs: dict[Label, Run] = {}
    for load in bench.pick(tuple(_LOADS), quick=("0.5", "1")):
        if load == "1":
            runs |= {
                (name, load, trace): run for (name, trace), run in compared(bench, THREE).items()
            }
            continue
        for trace, workload in traces(bench, _LOADS[load]).items():
            for name in THREE:
                runs[name, load, trace] = scenario(bench, workload, name)
    return runs


def _load_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    loads = list(dict.fromkeys(label[1] for label in outcomes))
    rows, jct, makespan = [], {}, {}
    for name in THREE:
        others = zip([load for load in _LOADS if load != "1"], _FIGURE_8A[name], strict=True)
        stored = {load: _hours(seconds) for load, seconds in others}
        stored["1"] = _stored_hours(bench, name)
        for load in loads:
            values = each(outcomes, "avg_jct_hours", name, load)
            of_load = ((name, load), "average JCT, h", values, stored[load])
            rows += (
                _of_the_same(bench, *of_load)
                if load == "1"
                else _of_eight(bench, *of_load, load=_LOADS[load])
            )
            rows.append(
                Row((name, load), "makespan, h", each(outcomes, "makespan_hours", name, load))
            )
        jct[name] = [Estimate.over(each(outcomes, "avg_jct_hours", name, load)) for load in loads]
        makespan[name] = [
            Estimate.over(each(outcomes, "makespan_hours", name, load)) for load in loads
        ]
    return Shown(
        ("policy", "load"),
        rows,
        why=_stored(bench, "At load 1"),
        figure=side_by_side(
            grouped_bars(loads, jct, x="Load", y="Average JCT (hours)"),
            grouped_bars(loads, makespan, x="Load", y="Makespan (hours)"),
        ),
    )


# ---- figure 8b: the interval of rounds

_FIGURE_8B = {"30": 2729.1, "60": 2751.1, "120": 2805.9, "240": 2968.5, "480": 3354.2}


def _interval_runs(bench: Bench) -> Runs:
    intervals = bench.pick(tuple(_FIGURE_8B), quick=("30", "60", "240"), tiny=("60", "240"))
    runs: dict[Label, Run] = {}
    for seconds in intervals:
        if seconds == "60":  # Pollux's own
            runs |= {
                (seconds, trace): run for (_, trace), run in compared(bench, (POLLUX,)).items()
            }
            continue
        for trace, workload in traces(bench).items():
            runs[seconds, trace] = scenario(bench, workload, round_seconds=float(seconds))
    return runs


def _interval_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    intervals = list(dict.fromkeys(label[0] for label in outcomes))
    jct = {s: each(outcomes, "avg_jct_hours", s) for s in intervals}
    queueing = {s: each(outcomes, "avg_queueing_hours", s) for s in intervals}
    rows = []
    for seconds in intervals:
        of_interval = ((seconds,), "average JCT, h", jct[seconds])
        if seconds == "60":
            rows += _of_the_same(bench, *of_interval, _stored_hours(bench))
            continue
        rows += _of_eight(bench, *of_interval, _hours(_FIGURE_8B[seconds]))
        relative = [100 * a / b for a, b in zip(jct[seconds], jct["60"], strict=True)]
        stored = round(100 * _FIGURE_8B[seconds] / _FIGURE_8B["60"], 1)
        rows += _of_eight(bench, (seconds,), "average JCT, % of that at 60 s", relative, stored)
    longest = intervals[-1]
    added = [
        100 * (q - q60) / (t - t60)
        for q, q60, t, t60 in zip(
            queueing[longest], queueing["60"], jct[longest], jct["60"], strict=True
        )
        if t > t60
    ]
    # section 5.3.2: "roughly half", taken as 40 to 60 %
    measure = "of the added JCT, queueing, %"
    rows.append(Row((longest,), measure, added, Published(40, 60)))
    drawn = {
        "average JCT": [(float(s), Estimate.over(jct[s])) for s in intervals],
        "of it, queueing": [(float(s), Estimate.over(queueing[s])) for s in intervals],
    }
    return Shown(
        ("seconds between rounds",),
        rows,
        why=f"{_stored(bench, 'At 60 s')} Queueing is until a job's first GPUs.",
        figure=lines(drawn, x="Seconds between rounds", y="Hours", log_x=True),
    )


# ---- figure 8c: interference of distributed jobs

AVOIDED, ALLOWED = "with avoidance", "without"
_FIGURE_8C = {"0": 2757.9, "0.25": 3177.1, "0.5": 3903.1}  # without avoidance


def _interference_runs(bench: Bench) -> Runs:
    losses = bench.pick(tuple(_FIGURE_8C), quick=tuple(_FIGURE_8C), tiny=("0", "0.5"))
    runs: dict[Label, Run] = {}
    for loss in losses:
        for trace, workload in traces(bench).items():
            runs[AVOIDED, loss, trace] = scenario(bench, workload, network_contention=float(loss))
            runs[ALLOWED, loss, trace] = scenario(
                bench,
                workload,
                parameters={"avoid_interference": False},
                network_contention=float(loss),
            )
    shared = {(AVOIDED, "0", trace): run for (_, trace), run in compared(bench, (POLLUX,)).items()}
    return runs | shared


def _interference_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    losses = list(dict.fromkeys(label[1] for label in outcomes))
    jct = {label[:2]: each(outcomes, "avg_jct_hours", *label[:2]) for label in outcomes}
    rows = []
    for (kind, loss), values in jct.items():
        share = f"{float(loss):.0%}"
        of_loss = ((kind, share), "average JCT, h", values)
        rows += (
            _of_the_same(bench, *of_loss, _stored_hours(bench))
            if kind == AVOIDED
            else _of_eight(bench, *of_loss, _hours(_FIGURE_8C[loss]))
        )
        if loss != "0":
            ratios = [a / b for a, b in zip(values, jct[kind, "0"], strict=True)]
            relative = ((kind, share), "average JCT / that at 0 %", ratios)
            if kind == AVOIDED:  # section 5.3.2: "unaffected"
                rows.append(Row(*relative, 1.0))
            else:
                stored = round(_FIGURE_8C[loss] / _FIGURE_8C["0"], 2)
                rows += _of_eight(bench, *relative, stored)
    bars = {
        kind: [Estimate.over(jct[kind, loss]) for loss in losses] for kind in (AVOIDED, ALLOWED)
    }
    return Shown(
        ("jobs that share nodes", "speed lost"),
        rows,
        why=(
            f"{_stored(bench, 'With avoidance')} How often distributed jobs meet on a node without "
            "avoidance is up to the search, and ours is not the published one (docs/pollux.md)."
        ),
        figure=grouped_bars(
            [f"{float(loss):.0%}" for loss in losses],
            bars,
            x="Speed lost by distributed jobs on one node",
            y="Average JCT (hours)",
        ),
    )


# ---- section 5.3.2: models seeded with what was measured before

KNOWN, LEARNT = "all step times known before", "learnt while the job runs"
LONG = ("imagenet", "yolov3")
MODELS = ("cifar10", "ncf", "deepspeech2", "bert", *LONG)


def _seeded_runs(bench: Bench) -> Runs:
    runs: dict[Label, Run] = {
        (LEARNT, trace): run for (_, trace), run in compared(bench, (POLLUX,)).items()
    }
    oracle = rules().revealing(ProfilingMode.ORACLE)
    for trace, workload in traces(bench).items():
        runs[KNOWN, trace] = scenario(bench, workload, fidelity=oracle)
    return runs


def _jct_by_model(run: Observation) -> dict[str, float]:
    """Return the average JCT in hours by model, of those that the workload has."""
    by_model: dict[str, list[float]] = {}
    for model, jct in zip(run.jobs["model"], run.jobs["jct_seconds"], strict=True):
        if jct is not None:
            by_model.setdefault(str(model), []).append(float(jct) / HOUR)
    return {model: sum(values) / len(values) for model, values in by_model.items()}


def _seeded_shown(bench: Bench, outcomes: Outcomes) -> Shown:
    known, learnt = ([_jct_by_model(run) for run in of(outcomes, kind)] for kind in (KNOWN, LEARNT))
    # "minor (2-5 %) reduction in JCT for short jobs like CIFAR10, no significant change" for long
    published = {"cifar10": Published(2, 5), **dict.fromkeys(LONG, Published(-2, 2))}
    rows, groups = [], []
    bars: dict[str, list[Estimate]] = {LEARNT: [], KNOWN: []}
    for model in MODELS:
        pairs = [(a[model], b[model]) for a, b in zip(known, learnt, strict=True) if model in a]
        if not pairs:
            continue
        groups.append(model)
        ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
        bars[KNOWN].append(Estimate.over(ours))
        bars[LEARNT].append(Estimate.over(theirs))
        rows.append(Row((model,), "average JCT, learnt, h", theirs))
        measure = "JCT shorter if all is known, %"
        rows.append(Row((model,), measure, shorter(ours, theirs), published.get(model)))
    jct = {kind: each(outcomes, "avg_jct_hours", kind) for kind in (KNOWN, LEARNT)}
    rows.append(
        Row(("all jobs",), "JCT shorter if all is known, %", shorter(jct[KNOWN], jct[LEARNT]))
    )
    return Shown(
        ("model",),
        rows,
        why=(
            "The paper gives 2 to 5 % for short jobs such as CIFAR10's and no significant change "
            "for longer ones (taken as 2 % here); a workload has few long jobs, so that their "
            "change is of single jobs, and the search is random."
        ),
        figure=grouped_bars(groups, bars, x="Model", y="Average JCT (hours)", log_y=True),
    )


ITEMS = (
    Item(
        "fig-8a",
        "Average JCT and makespan by load",
        _load_shown,
        runs=_load_runs,
        uses=(*USES[:2], "pollux trace {}/workloads-0.5/workload-1"),
        cpu_minutes=(0.6, None),
        whole_runs=36,
    ),
    Item(
        "fig-8b",
        "Average JCT by the interval of rounds",
        _interval_shown,
        runs=_interval_runs,
        uses=USES[:2],
        cpu_minutes=(1.2, None),
        whole_runs=15,
    ),
    Item(
        "fig-8c",
        "Average JCT by the interference of distributed jobs, with and without its avoidance",
        _interference_shown,
        runs=_interference_runs,
        uses=USES[:2],
        cpu_minutes=(2.6, None),
        whole_runs=18,
    ),
    Item(
        "sec-5.3.2",
        "What is gained by seeding jobs' throughput models",
        _seeded_shown,
        runs=_seeded_runs,
        uses=USES[:2],
        cpu_minutes=(0.8, None),
        whole_runs=6,
    ),
)
