"""The metrics of the fidelity page, and how their figures are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.fidelity.published import RunFigures


@dataclass(frozen=True, slots=True)
class Metric:
    """A column: the field, its heading, digits, and the allowed deviations.

    Deviations are shares, on each trace and on the mean; None: unlimited.
    """

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
CONTENTION = (
    Metric("contention_mean", "contention, mean", 1),
    Metric("contention_max", "contention, most", 0),
)


def difference(ours: float, theirs: float) -> float:
    """Return the relative difference, as a share of theirs."""
    return ours / theirs - 1


def percent(share: float) -> str:
    return f"{100 * share:+.1f} %".replace("-", "−")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Write a Markdown table; the first columns are words, the others figures."""
    lines = [heads, ["---"] * words + ["---:"] * (len(heads) - words), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(metric: Metric, ours: float, theirs: float) -> str:
    return f"{metric.text(ours)} ({metric.text(theirs)}, {percent(difference(ours, theirs))})"
