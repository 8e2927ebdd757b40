"""Checks before the work that what `--csv`, `--series` and `--plot` name can be written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from maat.cli import plot_options, series_files
from maat.cli.plot_options import check_plot
from maat.cli.series_files import check_series_path, files_of_series
from maat.library.files import check_writable
from maat.library.plots import Plots
from maat.scheduling.errors import InputError

CSV = "csv"


def check_outputs(
    plots: type[Plots],
    *,
    csv: Path | None,
    plot: Path | None,
    figure: str | None,
    series: Path | None = None,
    series_names: Sequence[str] = (),
    inputs: Sequence[Path] = (),
) -> None:
    """Check every output that is asked for. Raises InputError.

    `plots`: the figures that there are; `figure`: the one that is drawn; `series_names`: the tables
    of a folder of series; `inputs`: files that are not overwritten.
    """
    check_apart(
        {
            CSV: [] if csv is None else [csv],
            series_files.FIELD: [] if series is None else files_of_series(series, series_names),
            plot_options.FIELD: [] if plot is None else [plot],
        }
    )
    if csv is not None:
        check_writable(csv, field=CSV, inputs=inputs)
    if series is not None:
        check_series_path(series, series_names, inputs=inputs)
    check_plot(plot, figure, plots, inputs=inputs)


def check_apart(outputs: Mapping[str, Sequence[Path]]) -> None:
    """Check that no two outputs go to one file, by whatever paths: the second would replace it.

    `outputs`: the files of each, by the name of its option. Raises InputError.
    """
    option_of: dict[str, str] = {}
    for option, paths in outputs.items():
        for path in paths:
            other = option_of.setdefault(os.path.realpath(path), option)
            if other != option:
                raise InputError(
                    f"names what --{other} writes",
                    field=option,
                    value=str(path),
                    remedy="Name another file: each output needs its own.",
                )
