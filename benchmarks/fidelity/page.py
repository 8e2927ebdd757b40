"""Writes our outcomes and the published figures as Markdown.

Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from benchmarks.fidelity.metrics import (
    CONTENTION,
    METRICS,
    Metric,
    cell,
    difference,
    percent,
    table,
)
from benchmarks.fidelity.published import (
    HOURS_BY_TYPE,
    ONE_TYPE_RUN,
    RUNS,
    SWITCHES,
    TABLE_3,
    TYPES,
    RunFigures,
)
from benchmarks.fidelity.published import PAPER as PAPER_SOURCE
from benchmarks.fidelity.published import SIMULATOR as SIMULATOR_SOURCE
from benchmarks.fidelity.runs import (
    ARTIFACT,
    ARTIFACT_TRACES,
    CHANGED_TRACES,
    CHANGES,
    CLUSTER,
    ONE_TYPE_CLUSTER,
    ONE_TYPE_TRACE,
    PAPER,
    PAPER_TRACES,
    SEEDS,
    Outcome,
    Run,
)
from benchmarks.fidelity.words import ONE_TYPE_DIFFERENCES, PAPER_DIFFERENCES, SIMULATOR_DIFFERENCES

Outcomes = Mapping[Run, Outcome]


def page(outcomes: Outcomes) -> str:
    parts = [
        _head(),
        _beside_simulator(outcomes),
        _one_type(outcomes),
        _hours(outcomes),
        _beside_paper(outcomes),
    ]
    parts += [_single_rules(outcomes), _switches()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head() -> str:
    return (
        "# Fidelity\n\n"
        "How near Maat's simulations come to published ones. Measured by `python -m "
        "benchmarks.fidelity` (the data folder in `MAAT_DATA`; `--quick` for "
        "one trace), which writes this page. Every run is of the policy `sia` with the measured "
        f"profiles, on `{CLUSTER}` unless said.\n\n"
        f"- *Published simulator*: {SIMULATOR_SOURCE}.\n- *Paper*: {PAPER_SOURCE}."
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of one trace under all seeds, and the published one."""

    trace: str
    metric: Metric
    values: tuple[float, ...]
    published: float

    @property
    def off(self) -> float:
        """The relative difference of the mean."""
        return difference(fmean(self.values), self.published)

    @property
    def place(self) -> str:
        """Where the published figure is; figures are equal if they print equally."""
        least, most, theirs = (
            round(v, self.metric.digits)
            for v in (min(self.values), max(self.values), self.published)
        )
        return (
            "inside"
            if least <= theirs <= most
            else "below ours"
            if theirs < least
            else "above ours"
        )

    def within(self) -> int:
        """The seeds whose figure is within the deviation allowed for each trace."""
        each = self.metric.each
        return sum(
            each is None or abs(difference(value, self.published)) <= each for value in self.values
        )

    def row(self) -> list[str]:
        text, each = self.metric.text, self.metric.each
        kept = "" if each is None else f"{_bound(each)}: {self.within()} of {len(self.values)}"
        numbers = [
            text(fmean(self.values)),
            text(min(self.values)),
            text(max(self.values)),
            text(self.published),
            percent(self.off),
        ]
        return [self.trace, self.metric.heading, *numbers, self.place, kept]


SPREAD_HEADS = (
    "trace",
    "figure",
    "Maat, mean",
    "least",
    "most",
    "published",
    "difference",
    "the published figure is",
    "asked of each: seeds within",
)


def spreads(
    trace: str, outcomes: Outcomes, published: RunFigures, *, cluster: str = CLUSTER
) -> list[Spread]:
    """Return every figure of a trace at the artifact's fidelity, over the seeds.

    Empty if it was not run.
    """
    found = [
        outcomes[run].figures
        for seed in SEEDS
        if (run := Run(trace, ARTIFACT, seed, cluster)) in outcomes
    ]
    if not found:
        return []
    return [
        Spread(trace, metric, tuple(metric.of(figures) for figures in found), metric.of(published))
        for metric in METRICS
    ]


def _beside_simulator(outcomes: Outcomes) -> str:
    found = [
        spread for trace in ARTIFACT_TRACES for spread in spreads(trace, outcomes, RUNS[trace])
    ]
    if not found:
        return ""
    seeds = max(len(spread.values) for spread in found)
    words = _listed(SIMULATOR_DIFFERENCES)
    return (
        "## `--fidelity sia-artifact` beside the published simulator\n\nThe published simulator "
        "rounds costs to two decimals, so that many "
        "assignments cost the same and its solver takes one of them. Maat takes one at random, "
        "drawn by `--seed`: below are the mean, the least and "
        f"the most over {seeds} "
        f"seeds.\n\n{table(SPREAD_HEADS, [spread.row() for spread in found], words=2)}\n\n"
        f"{_means(found)}\n\n"
        f"{_verdict(found)}\n\n{words}"
    )


def _means(found: Sequence[Spread]) -> str:
    """Describe the mean over the traces: difference of means, and their range.

    The range covers the seeds that all traces were run with.
    """
    rows = []
    for metric in METRICS:
        mine = [spread for spread in found if spread.metric is metric]
        by_seed = [
            fmean(map(difference, values, [spread.published for spread in mine]))
            for values in zip(*(s.values for s in mine), strict=False)
        ]
        asked = "-" if metric.mean is None else _bound(metric.mean)
        rows.append(
            [
                metric.heading,
                percent(fmean(s.off for s in mine)),
                percent(min(by_seed)),
                percent(max(by_seed)),
                asked,
            ]
        )
    heads = [
        "mean of the traces' differences",
        "over all seeds",
        "least seed",
        "most seed",
        "asked of the mean",
    ]
    return table(heads, rows)


def _one_type(outcomes: Outcomes) -> str:
    found = spreads(ONE_TYPE_TRACE, outcomes, ONE_TYPE_RUN, cluster=ONE_TYPE_CLUSTER)
    if not found:
        return ""
    return (
        f"## The same on one GPU type\n\n{ONE_TYPE_TRACE} on `{ONE_TYPE_CLUSTER}`.\n\n"
        f"{table(SPREAD_HEADS, [spread.row() for spread in found], words=2)}\n\n"
        f"{_listed(ONE_TYPE_DIFFERENCES)}"
    )


def _listed(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences if sentence)


def _bound(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _verdict(found: Sequence[Spread]) -> str:
    """Name the figures outside the allowed deviation.

    Also names the published ones outside the range of the seeds.
    """
    outside = [
        f"{s.metric.heading} of {s.trace} ({percent(s.off)})"
        for s in found
        if s.metric.each is not None and abs(s.off) > s.metric.each
    ]
    for metric in METRICS:
        mean = fmean(s.off for s in found if s.metric is metric)
        if metric.mean is not None and abs(mean) > metric.mean:
            outside.append(f"{metric.heading} on the mean ({percent(mean)})")
    asked = (
        f"Outside what is asked: {'; '.join(outside)}."
        if outside
        else "Every mean over the seeds lies within what is asked."
    )
    beyond = [f"{s.metric.heading} of {s.trace} ({s.place})" for s in found if s.place != "inside"]
    ranges = (
        f"Not inside the range of the seeds: {'; '.join(beyond)}."
        if beyond
        else "Every published figure lies inside the range of the seeds."
    )
    return f"{asked} {ranges}"


def _hours(outcomes: Outcomes) -> str:
    rows = []
    for trace in ARTIFACT_TRACES:
        found = [
            outcomes[run].hours for seed in SEEDS if (run := Run(trace, ARTIFACT, seed)) in outcomes
        ]
        for model, published in HOURS_BY_TYPE[trace].items() if found else ():
            ours = [fmean(hours[model].get(kind, 0.0) for hours in found) for kind in TYPES]
            cells = [
                f"{a:.2f} ({b:.2f})"
                for a, b in zip([*ours, sum(ours)], [*published, sum(published)], strict=True)
            ]
            between = fmean(
                moved([hours[model].get(kind, 0.0) for kind in TYPES], ours) for hours in found
            )
            rows.append(
                [
                    trace,
                    model,
                    *cells,
                    f"{100 * moved(ours, published):.0f} %",
                    f"{100 * between:.0f} %",
                ]
            )
    heads = [
        "trace",
        "model",
        *(f"{kind}, h" for kind in TYPES),
        "sum, h",
        "on another type",
        "one seed to the mean",
    ]
    return (
        "## GPU-hours per job of a model, by GPU type\n\nMaat's mean over the seeds (published), "
        "whole rounds, fidelity `sia-artifact`. *On another "
        "type*: the share of a model's GPU-hours that would have to change type for the two mixes "
        "to be the same; *one seed to the mean*: the same "
        f"between one of Maat's seeds and their mean, on average.\n\n{table(heads, rows, words=2)}"
    )


def moved(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return half the distance between two mixes.

    It is 0 for equal shares and 1 for mixes without a common type.
    """
    shares = [
        [value / sum(mix) for value in mix] if sum(mix) else [0.0] * len(mix)
        for mix in (ours, theirs)
    ]
    return sum(abs(a - b) for a, b in zip(*shares, strict=True)) / 2


def _beside_paper(outcomes: Outcomes) -> str:
    rows = []
    for family, published in TABLE_3.items():
        runs = [
            run
            for trace in PAPER_TRACES
            if trace.startswith(family) and (run := Run(trace, PAPER)) in outcomes
        ]
        if runs:
            name = f"{family} 1" if len(runs) == 1 else f"{family} 1 to {len(runs)}"
            pooled = family_figures([outcomes[run] for run in runs])
            rows.append(
                [name, *(cell(m, m.of(pooled), m.of(published)) for m in (*METRICS, *CONTENTION))]
            )
    shown = table(["traces", *(m.heading for m in (*METRICS, *CONTENTION))], rows)
    words = _listed([*(tell(outcomes) for tell in MEASURED), *PAPER_DIFFERENCES])
    return (
        "## `--fidelity paper` beside the paper's table 3\n\nSeed 0. Means over the traces, p99 "
        "over their jobs together, the most of the contention; cells read "
        "Maat's figure (published figure, difference). The "
        "paper's means are over 8 to 10 traces of a family; public with these GPU types are the "
        f"ones here (saturn is the paper's Helios).\n\n{shown}\n\n"
        "The published simulator on the public traces, beside the same "
        f"table:\n\n{_simulator_beside_paper()}\n\n{words}"
    )


def _simulator_beside_paper() -> str:
    """Compare the published simulator's own figures with the paper's.

    Its p99 is the mean over the traces.
    """
    rows = []
    for family, published in TABLE_3.items():
        traces = [trace for trace in RUNS if trace.startswith(family)]
        mean = {metric: fmean(metric.of(RUNS[trace]) for trace in traces) for metric in METRICS}
        rows.append(
            [
                ", ".join(traces),
                *(cell(metric, mean[metric], metric.of(published)) for metric in METRICS),
            ]
        )
    return table(["traces", *(m.heading for m in METRICS)], rows)


def _single_rules(outcomes: Outcomes) -> str:
    """Return the mean change over the traces when one rule of `paper` changes."""
    rows = []
    for change in CHANGES:
        traces = [
            t
            for t in CHANGED_TRACES
            if Run(t, PAPER) in outcomes and Run(t, PAPER, change=change) in outcomes
        ]
        if traces:
            pairs = [
                (outcomes[Run(t, PAPER, change=change)].figures, outcomes[Run(t, PAPER)].figures)
                for t in traces
            ]
            rows.append(
                [
                    change,
                    *(
                        percent(fmean(difference(m.of(one), m.of(other)) for one, other in pairs))
                        for m in METRICS
                    ),
                ]
            )
    if not rows:
        return ""
    return (
        "### One rule at a time\n\nFidelity `paper` with one rule changed, mean over "
        f"{' and '.join(CHANGED_TRACES)}, seed 0: what each rule does to "
        "Maat's figures. Two runs that differ only in how a tie was broken differ by several per "
        "cent too (first table), in p99 and makespan by more."
        f"\n\n{table(['change', *(m.heading for m in METRICS)], rows)}"
    )


def _switches() -> str:
    published = SWITCHES["as published"]
    rows = [
        [
            change,
            *(m.text(m.of(figures)) + _change(m.of(figures), m.of(published)) for m in METRICS),
        ]
        for change, figures in SWITCHES.items()
    ]
    return (
        "### The same on the published simulator\n\nOn philly-1, one rule or one choice among "
        "equals changed at a time (measured on it, not on Maat)."
        f"\n\n{table(['change', *(m.heading for m in METRICS)], rows)}"
    )


def _change(value: float, reference: float) -> str:
    return "" if value == reference else f" ({percent(difference(value, reference))})"


def family_figures(outcomes: Sequence[Outcome]) -> RunFigures:
    """Return means over the traces of a family.

    p99 is over all their jobs and contention is the maximum, pooled as in the published scripts.
    """
    jct = sorted(hours for outcome in outcomes for hours in outcome.jct_hours)
    means = {
        f.name: fmean(getattr(outcome.figures, f.name) for outcome in outcomes)
        for f in fields(RunFigures)
    }
    most = max(outcome.figures.contention_max for outcome in outcomes)
    return RunFigures(
        **{**means, "p99_jct_hours": jct[int(0.99 * len(jct))], "contention_max": most}
    )


def _cost_of_not_knowing(outcomes: Outcomes) -> str:
    """Describe how the two fidelities differ on the traces that both were run on."""
    both = [
        t for t in ARTIFACT_TRACES if Run(t, ARTIFACT) in outcomes and Run(t, PAPER) in outcomes
    ]
    if not both:
        return ""
    ratio = {
        name: fmean(
            difference(
                metric.of(outcomes[Run(t, PAPER)].figures),
                metric.of(outcomes[Run(t, ARTIFACT)].figures),
            )
            for t in both
        )
        for name, metric in {m.name: m for m in METRICS}.items()
    }
    return (
        f"Between Maat's own two fidelities, on the {len(both)} traces that both were run on, the "
        "paper's rules change average JCT by "
        f"{percent(ratio['avg_jct_hours'])}, GPU-hours per job by "
        f"{percent(ratio['gpu_hours_per_job'])} and restarts per job by "
        f"{percent(ratio['restarts_per_job'])}: that part of a difference comes from the rules "
        "below, not from the engine."
    )


MEASURED: Sequence[Callable[[Outcomes], str]] = (_cost_of_not_knowing,)
