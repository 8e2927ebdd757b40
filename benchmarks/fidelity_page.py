"""The outcomes of `benchmarks.fidelity_runs` beside the published figures, as Markdown. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median

from benchmarks.fidelity_runs import ARTIFACT, ARTIFACT_TRACES, CLUSTER, PAPER, PAPER_TRACES, SEEDED_TRACE, SEEDS, Outcome, Run
from benchmarks.fidelity_words import PAPER_DIFFERENCES, SIMULATOR_DIFFERENCES
from benchmarks.published import HOURS_BY_TYPE, RUNS, SWITCHES, TABLE_3, TYPES, RunFigures
from benchmarks.published import PAPER as PAPER_SOURCE
from benchmarks.published import SIMULATOR as SIMULATOR_SOURCE

Outcomes = Mapping[Run, Outcome]


@dataclass(frozen=True, slots=True)
class Metric:
    """A column: the field, its heading, digits, and how far off it may be on each trace and on the mean (shares; None: not bounded)."""

    name: str
    heading: str
    digits: int
    each: float | None = None
    mean: float | None = None

    def of(self, figures: RunFigures) -> float:
        return float(getattr(figures, self.name))

    def text(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


METRICS = (
    Metric("avg_jct_hours", "average JCT, h", 3, 0.05, 0.03),
    Metric("p99_jct_hours", "p99 JCT, h", 2, 0.20, 0.12),
    Metric("makespan_hours", "makespan, h", 2, 0.07),
    Metric("gpu_hours_per_job", "GPU-hours per job", 2, mean=0.10),
    Metric("restarts_per_job", "restarts per job", 2, mean=0.10),
)
CONTENTION = (Metric("contention_mean", "contention, mean", 1), Metric("contention_max", "contention, most", 0))


def page(outcomes: Outcomes) -> str:
    parts = [_head(), _beside_simulator(outcomes), _ties(outcomes), _hours(outcomes), _beside_paper(outcomes), _switches()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head() -> str:
    return (
        "# Fidelity\n\n"
        "Measured by `python -m benchmarks.fidelity` (the data folder in `MAAT_DATA`; `--quick` for one trace). Every run is of the policy `sia` on "
        f"`{CLUSTER}` with the measured profiles; seed 0 unless said. Cells read: Maat's figure (published figure, difference).\n\n"
        f"- *Published simulator*: {SIMULATOR_SOURCE}.\n- *Paper*: {PAPER_SOURCE}."
    )


def difference(ours: float, theirs: float) -> float:
    """Relative difference, a share of theirs."""
    return ours / theirs - 1


def percent(share: float) -> str:
    return f"{100 * share:+.1f} %".replace("-", "−")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is words, the others figures."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(metric: Metric, ours: float, theirs: float) -> str:
    return f"{metric.text(ours)} ({metric.text(theirs)}, {percent(difference(ours, theirs))})"


def _beside_simulator(outcomes: Outcomes) -> str:
    found = {trace: outcomes[run].figures for trace in ARTIFACT_TRACES if (run := Run(trace, ARTIFACT)) in outcomes}
    rows = [[trace, *(_cell(m, m.of(figures), m.of(RUNS[trace])) for m in METRICS)] for trace, figures in found.items()]
    means, differences = ["mean of the traces"], ["mean of the differences"]
    for metric in METRICS:
        ours, theirs = [metric.of(figures) for figures in found.values()], [metric.of(RUNS[trace]) for trace in found]
        means.append(_cell(metric, fmean(ours), fmean(theirs)))
        differences.append(percent(fmean(difference(a, b) for a, b in zip(ours, theirs, strict=True))))
    bounds = ["asked: each / mean", *(" / ".join(_bound(share) for share in (m.each, m.mean)) for m in METRICS)]
    shown = table(["trace", *(m.heading for m in METRICS)], [*rows, means, differences, bounds])
    words = "\n".join(f"- {sentence}" for sentence in SIMULATOR_DIFFERENCES)
    return f"## `--fidelity sia-artifact` beside the published simulator\n\n{shown}\n\n{_verdict(found)}\n\n{words}"


def _bound(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _verdict(found: Mapping[str, RunFigures]) -> str:
    """Which cells lie outside what is asked, by name."""
    outside = []
    for metric in METRICS:
        apart = {trace: difference(metric.of(figures), metric.of(RUNS[trace])) for trace, figures in found.items()}
        if metric.each is not None:
            outside += [f"{metric.heading} of {trace} ({percent(d)})" for trace, d in apart.items() if abs(d) > metric.each]
        if metric.mean is not None and abs(fmean(apart.values())) > metric.mean:
            outside.append(f"{metric.heading} on the mean ({percent(fmean(apart.values()))})")
    return f"Outside what is asked: {'; '.join(outside)}." if outside else "Every figure lies within what is asked."


def _ties(outcomes: Outcomes) -> str:
    found = [outcomes[run].figures for seed in SEEDS if (run := Run(SEEDED_TRACE, ARTIFACT, seed)) in outcomes]
    if len(found) < 2:
        return ""
    rows = []
    for metric in METRICS:
        ours, theirs = sorted(metric.of(figures) for figures in found), metric.of(RUNS[SEEDED_TRACE])
        place = "inside" if ours[0] <= theirs <= ours[-1] else "below ours" if theirs < ours[0] else "above ours"
        rows.append([metric.heading, *(metric.text(v) for v in (ours[0], median(ours), ours[-1])), metric.text(theirs), place])
    shown = table(["figure", "least", "median", "most", "published", "the published figure is"], rows)
    return (
        f"## {len(found)} ways to break ties\n\nThe published simulator rounds costs to two decimals, so that many assignments cost the same and "
        f"its solver chooses one of them. `--seed` chooses among them at random: {SEEDED_TRACE} with seeds {SEEDS[0]} to {len(found) - 1}.\n\n{shown}"
    )


def _hours(outcomes: Outcomes) -> str:
    rows = []
    for trace in ARTIFACT_TRACES:
        if (run := Run(trace, ARTIFACT)) not in outcomes:
            continue
        for model, published in HOURS_BY_TYPE[trace].items():
            ours = [outcomes[run].hours[model].get(kind, 0.0) for kind in TYPES]
            cells = [f"{a:.2f} ({b:.2f})" for a, b in zip([*ours, sum(ours)], [*published, sum(published)], strict=True)]
            rows.append([trace, model, *cells, f"{100 * moved(ours, published):.0f} %"])
    shown = table(["trace", "model", *(f"{kind}, h" for kind in TYPES), "sum, h", "on another type"], rows)
    return (
        "## GPU-hours per job of a model, by GPU type\n\nMaat (published), whole rounds, fidelity `sia-artifact`. *On another type*: the share of a "
        f"model's GPU-hours that would have to change type for the two mixes to be the same.\n\n{shown}"
    )


def moved(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Half the distance between two mixes: 0 where they have the same shares, 1 where they have no type in common."""
    shares = [[value / sum(mix) for value in mix] if sum(mix) else [0.0] * len(mix) for mix in (ours, theirs)]
    return sum(abs(a - b) for a, b in zip(*shares, strict=True)) / 2


def _beside_paper(outcomes: Outcomes) -> str:
    rows = []
    for family, published in TABLE_3.items():
        runs = [run for trace in PAPER_TRACES if trace.startswith(family) and (run := Run(trace, PAPER)) in outcomes]
        if runs:
            name = f"{family} 1" if len(runs) == 1 else f"{family} 1 to {len(runs)}"
            pooled = family_figures([outcomes[run] for run in runs])
            rows.append([name, *(_cell(m, m.of(pooled), m.of(published)) for m in (*METRICS, *CONTENTION))])
    shown = table(["traces", *(m.heading for m in (*METRICS, *CONTENTION))], rows)
    words = "\n".join(f"- {sentence}" for sentence in (*(tell(outcomes) for tell in MEASURED), *PAPER_DIFFERENCES) if sentence)
    return (
        "## `--fidelity paper` beside the paper's table 3\n\nMeans over the traces, p99 over their jobs together, the most of the contention. The "
        f"paper's means are over 8 to 10 traces of a family; public with these GPU types are the ones here (saturn is the paper's Helios).\n\n{shown}\n\n{words}"
    )


def _switches() -> str:
    published = SWITCHES["as published"]
    rows = [
        [change, *(m.text(m.of(figures)) + _change(m.of(figures), m.of(published)) for m in METRICS)]
        for change, figures in SWITCHES.items()
    ]
    return (
        "## What single rules do\n\nThe published simulator on philly-1 with one rule changed at a time (measured on it, not on Maat): how far single "
        f"rules, and choices among equals, move each figure.\n\n{table(['change', *(m.heading for m in METRICS)], rows)}"
    )


def _change(value: float, reference: float) -> str:
    return "" if value == reference else f" ({percent(difference(value, reference))})"


def family_figures(outcomes: Sequence[Outcome]) -> RunFigures:
    """Means over the traces of a family; p99 of all their jobs together and the most contention, as the published scripts pool them."""
    jct = sorted(hours for outcome in outcomes for hours in outcome.jct_hours)
    means = {f.name: fmean(getattr(outcome.figures, f.name) for outcome in outcomes) for f in fields(RunFigures)}
    most = max(outcome.figures.contention_max for outcome in outcomes)
    return RunFigures(**{**means, "p99_jct_hours": jct[int(0.99 * len(jct))], "contention_max": most})


def _cost_of_not_knowing(outcomes: Outcomes) -> str:
    """How the two fidelities differ on the traces that both were run on."""
    both = [t for t in ARTIFACT_TRACES if Run(t, ARTIFACT) in outcomes and Run(t, PAPER) in outcomes]
    if not both:
        return ""
    ratio = {
        name: fmean(difference(metric.of(outcomes[Run(t, PAPER)].figures), metric.of(outcomes[Run(t, ARTIFACT)].figures)) for t in both)
        for name, metric in {m.name: m for m in METRICS}.items()
    }
    return (
        f"Between Maat's own two fidelities, on the {len(both)} traces that both were run on, the paper's rules change average JCT by "
        f"{percent(ratio['avg_jct_hours'])}, GPU-hours per job by {percent(ratio['gpu_hours_per_job'])} and restarts per job by "
        f"{percent(ratio['restarts_per_job'])}: that part of a difference comes from the rules below, not from the engine."
    )


MEASURED: Sequence[Callable[[Outcomes], str]] = (_cost_of_not_knowing,)
