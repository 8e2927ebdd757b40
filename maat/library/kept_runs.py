"""The tables that a comparison or a sweep keeps of each of its runs, if it is asked to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from maat.library.plots import RunPlots
from maat.library.run import Run
from maat.library.study_plots import where
from maat.library.tables import Cell, Table, joined
from maat.scheduling.errors import InputError, UnknownNameError
from maat.simulation.record import SimulationResult

KEPT = ("jobs", "gpus", "efficiency", "nodes", "waits")
"""Tables of a run: all but those that have a row per round or per stretch of a job's life."""

Columns = Mapping[str, Sequence[Cell]]


def tables_of(result: SimulationResult) -> Mapping[str, Columns]:
    """Return the tables that are kept of a run, by name; they are of JSON's own types."""
    run = Run(result)
    return {name: getattr(run, name).to_dict() for name in KEPT}


@dataclass(frozen=True, eq=False, repr=False)
class KeptRun:
    """A run of a comparison or a sweep, with tables and figures like those of a Run.

    `line`: who had it, as figures show it.

    >>> import maat
    >>> trace = maat.generate(jobs=4, hours=1, seed=1)
    >>> found = maat.compare(["fifo", "las"], trace, workers=1, series=True)
    >>> run = found.run("las")
    >>> run
    las + packed-sticky on philly-1, seed 0
    >>> len(run.jobs), max(run.gpus["gpus"]) > 0, run.nodes["nodes"]
    (4, True, [11])
    >>> run.waits.columns[0], run.efficiency.columns[0]
    ('job', 'time_seconds')
    >>> run.plot.waits_cdf().layout.xaxis.title.text
    'Waiting in all (hours)'
    """

    line: str
    trace: str
    seed: int
    tables: Mapping[str, Columns]

    @cached_property
    def jobs(self) -> Table:
        """One row per job, as of `maat.simulate`."""
        return Table.of(self.tables["jobs"])

    @cached_property
    def gpus(self) -> Table:
        """GPUs in use over time, as of `maat.simulate`."""
        return Table.of(self.tables["gpus"])

    @cached_property
    def efficiency(self) -> Table:
        """Mean statistical efficiency over time, as of `maat.simulate`."""
        return Table.of(self.tables["efficiency"])

    @cached_property
    def nodes(self) -> Table:
        """Nodes in service over time, as of `maat.simulate`."""
        return Table.of(self.tables["nodes"])

    @cached_property
    def waits(self) -> Table:
        """One row per wait of a job, as of `maat.simulate`."""
        return Table.of(self.tables["waits"])

    @property
    def plot(self) -> RunPlots:
        """The figures: `run.plot.gpus_over_time()` and others."""
        return RunPlots({self.line: self})

    def __repr__(self) -> str:
        return f"{self.line} on {where(self)}"


def kept_runs(runs: Iterable[KeptRun]) -> tuple[KeptRun, ...]:
    """Return the runs. Raises InputError if their tables were not kept."""
    found = tuple(runs)
    if not all(run.tables for run in found):
        raise InputError(
            "were not kept of these runs",
            field="series",
            value=False,
            remedy="Ask for them before: series=True.",
        )
    return found


def chosen_run(runs: Sequence[KeptRun], line: str, trace: str | None, seed: int | None) -> KeptRun:
    """Return the first of these runs. Raises InputError if there is none."""
    for run in runs:
        if run.line == line and trace in (None, run.trace) and seed in (None, run.seed):
            return run
    wanted = [str(part) for part in (line, trace, seed) if part is not None]
    raise InputError(
        "is no run of this study",
        field="run",
        value=", ".join(wanted),
        remedy=f"The first are: {'; '.join(map(repr, runs[:5]))}.",
    )


def joined_tables(name: str, who: Iterable[Mapping[str, Cell]], runs: Sequence[KeptRun]) -> Table:
    """Return a table of all runs below each other; `who`: the first cells of each run's rows.

    Raises UnknownNameError for a table that is not kept.
    """
    if name not in KEPT:
        raise UnknownNameError(
            "is not kept of runs",
            field="name",
            value=name,
            remedy=f"Use one of: {', '.join(KEPT)}.",
        )
    return joined(zip(who, (getattr(run, name) for run in runs), strict=True))
