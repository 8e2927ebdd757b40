"""The goodput matrix of a round: jobs x configurations, with the chosen cells framed."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import plotly.graph_objects as go

from frontend.figures.links import job_address
from frontend.figures.matrix_rows import Cells, best_of, cells_of
from frontend.formatting import number
from maat.api.rounds import RoundConfiguration, RoundRecord
from maat.figures.base import empty_figure, figure
from maat.figures.texts import escape, text_pixels
from maat.figures.theme import palette

WORDS_CHARACTERS = 60  # of a line of the words on a job
MAX_JOBS = 60
MAX_COLUMNS = 120
EMPTY_PIXELS = 300  # nothing else gives an empty matrix its height
LABEL_CHARACTERS = 36  # that stand apart beside one another where the page is 1280 px wide
# Pixels of an upright label, of a letter of one that lies, and of the words above all labels.
UPRIGHT_PIXELS, LETTER_PIXELS, TITLE_PIXELS = 15, 8, 250
# Pixels of a letter of a label above the cells, and of what stands beside the names: the word of
# the axis, the numbers, the edge.
LABEL_LETTER_PIXELS, AXIS_PIXELS = 6.7, 85
NAME_CHARACTERS = 22  # at least; assets/chart_names.js gives names the room that a page has


def matrix_figure(
    record: RoundRecord, *, scheme: str | None, first: int = 0, rows: Sequence[int] | None = None
) -> go.Figure:
    """Heatmap: configuration (GPU type x GPU count) x job, coloured by goodput.

    The colour is goodput relative to the job's best cell (0-1, cividis). A configuration on
    several node counts is one column each, as the policy saw them. Cells that cannot run stay
    grey; the chosen cell of each job has a frame. Of another tenant's job only the frame is known.

    Shows `MAX_JOBS` jobs from `first` of these `rows` of the record (default: all);
    `meta.least_pixels` is the width at which every label can be read, `meta.names_pixels` the left
    margin of it, `meta.row_names` the whole names of its rows.
    """
    if words := _empty_words(record):
        title, remedy, height = words
        return empty_figure(scheme, title, remedy, height=height)
    names = record["job_names"]
    shown = list(range(len(names)) if rows is None else rows)[first : first + MAX_JOBS]
    if not shown:
        return empty_figure(scheme, "No job has this in its name", "Search for another part of it.")
    columns = _columns(record, shown)
    labels = [_label(record["configurations"][column]) for column in columns]
    upright = sum(map(len, labels)) > LABEL_CHARACTERS
    letters = UPRIGHT_PIXELS if upright else LETTER_PIXELS * max(map(len, labels))
    cells_pixels = max(len(labels) * letters, TITLE_PIXELS)
    short = [_short(names[index]) for index in shown]
    drawn = figure(
        scheme,
        x="Configuration: GPU type, GPUs · nodes",
        y="Job",
        height=max(280, 19 * len(shown) + 120),
    )
    drawn.add_trace(_heatmap(record, shown, columns))
    _grey_the_infeasible(drawn, scheme, columns=len(columns), rows=len(shown))
    chosen = ((record["chosen"][job], row) for row, job in enumerate(shown))
    _frame_the_chosen(
        drawn, [(columns.index(cell), row) for cell, row in chosen if cell in columns]
    )
    _name_rows_and_columns(drawn, _numbered(shown, short), labels, upright=upright)
    beside = AXIS_PIXELS + max(map(text_pixels, short))
    above = 28 + LABEL_LETTER_PIXELS * max(map(len, labels)) if upright else 48
    drawn.update_layout(
        hovermode="closest",
        margin={"l": beside - 20, "t": above, "b": 60},
        hoverlabel={"align": "left"},
        meta={
            "chosen": sum(choice is not None for choice in record["chosen"]),
            "least_pixels": beside + cells_pixels,
            "names_pixels": beside - 20,
            "row_names": _numbered(shown, [names[index] for index in shown]),
        },
    )
    return drawn


def _empty_words(record: RoundRecord) -> tuple[str, str, int | None] | None:
    """Return title, remedy and height of what stands for an empty matrix; None if it has cells."""
    names, configurations = record["job_names"], record["configurations"]
    if names and configurations and record["pairs"]["job"]:
        return None
    if names and configurations and len(_others(record)) == len(names):
        return (
            "Only jobs of other tenants waited in this round",
            "What they would make of GPUs is not shown.",
            None,
        )
    return (
        "No job was active in this round",
        "The matrix shows from the first round with a job that can run.",
        EMPTY_PIXELS,
    )


def _others(record: RoundRecord) -> frozenset[int]:
    """Return the rows of other tenants' jobs; a record from before there were some has none."""
    return frozenset(record.get("others", ()))


def _heatmap(record: RoundRecord, shown: Sequence[int], columns: Sequence[int]) -> go.Heatmap:
    cells = cells_of(record)
    best = best_of(cells)
    told = {job: _hover_text(record, cells, job) for job in shown}
    z = [[_share(cells.get((job, c)), best.get(job)) for c in columns] for job in shown]
    hover = [
        [_hover_of(record, job, c, cells.get((job, c)), best.get(job)) + told[job] for c in columns]
        for job in shown
    ]
    scale = {
        "orientation": "h",
        "thickness": 10,
        "tickformat": ".0%",
        "outlinewidth": 0,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "lenmode": "pixels",
        "len": 200,
    }
    return go.Heatmap(
        z=z,
        x=list(range(len(columns))),
        y=list(range(len(shown))),
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        colorscale="Cividis",
        zmin=0,
        zmax=1,
        xgap=1,
        ygap=1,
        colorbar=scale,
        customdata=[[job_address(record["job_ids"][job])] * len(columns) for job in shown],
    )


def _name_rows_and_columns(
    drawn: go.Figure, rows: Sequence[str], labels: Sequence[str], *, upright: bool
) -> None:
    drawn.update_xaxes(
        tickvals=list(range(len(labels))),
        ticktext=labels,
        tickangle=-90 if upright else 0,
        showline=False,
        side="top",
        range=[-0.5, len(labels) - 0.5],
    )
    drawn.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=rows,
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
    )


def _columns(record: RoundRecord, shown: Sequence[int]) -> list[int]:
    """Return the columns that some shown job can use, in the table's order.

    At most MAX_COLUMNS, the chosen ones always among them.
    """
    wanted = frozenset(shown)
    used = sorted(
        {
            column
            for job, column in zip(record["pairs"]["job"], record["pairs"]["column"], strict=True)
            if job in wanted
        }
    )
    chosen = {choice for job in shown if (choice := record["chosen"][job]) is not None}
    if len(used) <= MAX_COLUMNS:
        return sorted({*used, *chosen})
    return sorted({*used[: MAX_COLUMNS - len(chosen)], *chosen})


def _share(cell: tuple[float, float | None] | None, best: float | None) -> float | None:
    return None if cell is None or not best else cell[0] / best


def _hover_of(
    record: RoundRecord,
    job: int,
    column: int,
    cell: tuple[float, float | None] | None,
    best: float | None,
) -> str:
    """Return what a cell says: job, configuration, goodput, and whether it was chosen."""
    head = f"{escape(record['job_names'][job])}<br>{_label(record['configurations'][column])}"
    chosen = record["chosen"][job] == column
    if job in _others(record):
        words = "chosen" if chosen else "what it would make of this is not shown"
        return f"{head}<br>{words}"
    if cell is None:
        return f"{head}<br>cannot run here"
    utility = "" if cell[1] is None else f"<br>utility {number(cell[1])}"
    share = "" if not best else f" ({cell[0] / best:.0%} of its best)"
    goodput = f"goodput {number(cell[0])} effective samples/s"
    return f"{head}<br>{goodput}{share}{utility}" + ("<br>chosen" if chosen else "")


def _hover_text(record: RoundRecord, cells: Cells, job: int) -> str:
    """Return what every cell of a job says of the job: what it got, what came second, and why."""
    if job in _others(record):
        return ""
    chosen = record["chosen"][job]
    got = "waits" if chosen is None else f"has {_label(record['configurations'][chosen])}"
    lines = [f"It {got}."]
    second = record["runner_up"][job]
    if second is not None:
        lines.append(
            f"Second: {_label(record['configurations'][second])}{_worth(cells, job, second)}."
        )
    reason = record["reasons"].get(record["job_ids"][job])
    for sentence in record["why"][job] or ([reason["sentence"]] if reason else []):
        lines += wrap(escape(sentence), WORDS_CHARACTERS)
    return "<br>" + "".join(f"<br>{line}" for line in lines)


def _worth(cells: Cells, job: int, column: int) -> str:
    cell = cells.get((job, column))
    if cell is None:
        return ""
    goodput, utility = cell
    return f", {number(goodput)} samples/s" if utility is None else f", utility {number(utility)}"


def _label(configuration: RoundConfiguration) -> str:
    nodes = configuration.get("node_count") or 1
    return f"{escape(str(configuration['gpu_type']))} {configuration['gpu_count']}" + (
        f" · {nodes}n" if nodes > 1 else ""
    )


def _short(name: str) -> str:
    """Cut in its middle: names that begin alike differ at their ends."""
    half = NAME_CHARACTERS // 2
    return name if len(name) <= NAME_CHARACTERS else f"{name[: half - 1]}…{name[-half:]}"


def _numbered(shown: Sequence[int], names: Sequence[str]) -> list[str]:
    return [f"{index + 1}. {escape(name)}" for index, name in zip(shown, names, strict=True)]


def _grey_the_infeasible(drawn: go.Figure, scheme: str | None, *, columns: int, rows: int) -> None:
    drawn.add_shape(
        type="rect",
        x0=-0.5,
        x1=columns - 0.5,
        y0=-0.5,
        y1=rows - 0.5,
        fillcolor=palette(scheme).free,
        line={"width": 0},
        layer="below",
    )


def _frame_the_chosen(drawn: go.Figure, cells: Sequence[tuple[int, int]]) -> None:
    """A white frame inside a black one: visible on every shade of cividis, in both schemes.

    One path has the frames of all cells: each shape costs Plotly milliseconds, here and there. The
    frames lie inside their cells, since Plotly draws nothing beyond the last ones.
    """
    if not cells:
        return
    frames = "".join(
        f"M{column - 0.38:g},{row - 0.4:g}H{column + 0.38:g}V{row + 0.4:g}H{column - 0.38:g}Z"
        for column, row in cells
    )
    for colour, width in (("#000000", 4), ("#ffffff", 2)):
        drawn.add_shape(
            type="path",
            name="chosen",
            path=frames,
            line={"color": colour, "width": width},
            layer="above",
        )
