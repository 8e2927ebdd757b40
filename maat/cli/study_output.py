"""What a comparison or a sweep prints, writes and draws: the options that both share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Protocol

import typer

from maat.cli.figure_options import FigureNames, RuleOfFairness
from maat.cli.output import write_table
from maat.cli.output_files import check_outputs
from maat.cli.plot_options import PlotFile, write_plot
from maat.cli.series_files import OF_STUDY, SeriesPath, write_series
from maat.laboratory.figures import DEFAULT_RULE
from maat.library.study_plots import StudyPlots
from maat.library.tables import Table


class Study(Protocol):
    """What has been run: its series by name, and its figures."""

    def series(self, name: str) -> Table: ...
    @property
    def plot(self) -> StudyPlots: ...


@dataclass(frozen=True)
class StudyOutput:
    """What to print, to write and to draw.

    `plots`: the figures that there are; an own `figure` option lists them.
    """

    plots: ClassVar[type[StudyPlots]]

    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object with every run and every mean, not rounded."
        ),
    ] = False
    csv_path: Annotated[
        Path | None,
        typer.Option("--csv", help="Write one line per run: what it is of, and its figures."),
    ] = None
    series_path: SeriesPath = None
    plot_path: PlotFile = None
    figure: str | None = None
    figure_names: FigureNames = None
    rule: RuleOfFairness = DEFAULT_RULE

    @property
    def needs_series(self) -> bool:
        """Whether what is written or drawn needs the series of the runs."""
        return self.series_path is not None or self.plots.needs_series(self.figure)

    def check(self, *, inputs: Sequence[Path]) -> None:
        """Check before the runs that what is asked for can be written. Raises InputError."""
        check_outputs(
            self.plots,
            csv=self.csv_path,
            plot=self.plot_path,
            figure=self.figure,
            series=self.series_path,
            series_names=OF_STUDY,
            inputs=inputs,
        )

    def write(self, study: Study, runs: Table) -> None:
        """Draw, and write the table of runs and their series, where they are asked for."""
        if self.csv_path is not None:
            write_table(self.csv_path, runs)
        if self.series_path is not None:
            write_series({name: study.series(name) for name in OF_STUDY}, self.series_path)
        write_plot(self.plot_path, self.figure, study.plot)
