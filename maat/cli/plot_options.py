"""The options that draw: `--plot FILE`, and `--figure NAME`, which of a command's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.library.pictures import check_figure_path, write_figure
from maat.library.plots import Plots
from maat.scheduling.errors import InputError

FIELD = "plot"

PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Draw a figure to a file: a picture (.svg, .png, .pdf; Chrome draws it), "
        "or an interactive page (.html).",
    ),
]


def figure_option(plots: type[Plots], *, more: str = "") -> Any:
    """Return the option that names what is drawn; `more`: what else it takes."""
    chief, *others = plots.names()
    return typer.Option(
        "--figure",
        metavar="NAME",
        help=f"What --plot draws: {chief} (default), {', '.join(others)}{more}.",
    )


OF_MEANS = "; or a name of --figures, whose means it draws"


def check_plot(
    path: Path | None, figure: str | None, plots: type[Plots], *, inputs: Sequence[Path] = ()
) -> None:
    """Check before the work that the figure can be drawn and written. Raises InputError."""
    if figure is not None:
        plots.check(figure)
    if path is not None:
        check_figure_path(path, field=FIELD, inputs=inputs)
    elif figure is not None:
        raise InputError(
            "is drawn to no file",
            field="figure",
            value=figure,
            remedy="Name one: --plot FILE.svg.",
        )


def write_plot(path: Path | None, figure: str | None, plots: Plots) -> None:
    """Draw what is asked for, if anything is. Raises InputError or MaatError if it cannot be."""
    if path is not None:
        write_figure(plots.draw(figure), path, field=FIELD)
