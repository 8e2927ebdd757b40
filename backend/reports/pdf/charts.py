"""The five figures as vector drawings, from the document's rows. Shades differ by lightness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reportlab.graphics.charts.axes import XValueAxis
from reportlab.graphics.charts.barcharts import HorizontalBarChart, VerticalBarChart
from reportlab.graphics.shapes import Drawing, Line, Rect, String
from reportlab.lib.colors import white
from reportlab.pdfbase.pdfmetrics import stringWidth

from backend.reports import words
from backend.reports.pdf.style import BOLD, INK, LIGHT, LINE, MUTED, PLAIN, SHADES, printable
from maat.api.report_rows import drawn_rows
from maat.api.reports import Cell, Chart, ColumnOut, FigureOut

NAME_CHARACTERS = 24
IN_CELLS = ("s", "share", "jobs")  # units that the cells' own words say
_SMALL, _LABEL = 7.5, 8.0
Words = Callable[[float], str]


@dataclass(frozen=True)
class Bars:
    """Bars of a figure: a name per bar, and for each series its values and its name."""

    names: list[str]
    series: list[tuple[str, list[float]]]
    left_out: int = 0


def drawing_of(figure: FigureOut, width: float) -> Drawing | None:
    """Draw a figure as wide as the page's text; None if it has nothing to draw."""
    return _DRAW[figure["chart"]](figure, width)


def _bars(figure: FigureOut, keys: Sequence[str], *, name: str) -> Bars:
    columns = {column["key"]: index for index, column in enumerate(figure["columns"])}
    shown, left_out = drawn_rows(figure, keys)
    labels = [
        label_of(column) for key in keys for column in figure["columns"] if column["key"] == key
    ]
    return Bars(
        [str(row[columns[name]]) for row in shown],
        [
            (label, [_value(row[columns[key]]) for row in shown])
            for key, label in zip(keys, labels, strict=True)
        ],
        left_out,
    )


def label_of(column: ColumnOut) -> str:
    """Return a column's heading; with its unit, unless every cell shows it."""
    if not column["unit"] or column["unit"] in IN_CELLS:
        return column["label"]
    return f"{column['label']} ({column['unit']})"


def _value(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def _hours(figure: FigureOut, width: float) -> Drawing | None:
    columns = {column["key"]: index for index, column in enumerate(figure["columns"])}
    rows = figure["rows"]
    if not rows:
        return None
    parts = ("useful", "overhead", "idle")
    drawing = Drawing(width, 150)
    chart = VerticalBarChart()
    chart.x, chart.y, chart.width, chart.height = 42, 24, width - 50, 88
    chart.categoryAxis.style = "stacked"
    chart.data = [tuple(_value(row[columns[part]]) for row in rows) for part in parts]
    chart.categoryAxis.categoryNames = _sparse([str(row[columns["when"]]) for row in rows], width)
    _style_bars(chart, len(parts))
    chart.barWidth, chart.groupSpacing = 10, 4 if len(rows) < 32 else 1
    chart.valueAxis.valueMin = 0
    chart.valueAxis.labelTextFormat = _grouped
    drawing.add(chart)
    labels = [figure["columns"][columns[part]]["label"] for part in parts]
    _legend(drawing, labels, x=42, y=136)
    drawing.add(_text(0, 122, "GPU-hours", MUTED))
    return drawing


def _sparse(names: list[str], width: float) -> list[str]:
    """Leave out names of bars where they would overlap."""
    room = max(int((width - 50) / 52), 1)
    every = -(-len(names) // room)
    return [printable(name) if index % every == 0 else "" for index, name in enumerate(names)]


def _waits(figure: FigureOut, width: float) -> Drawing | None:
    bars = _bars(figure, ("median", "p90"), name="tenant")
    highest = max((max(values, default=0.0) for _, values in bars.series), default=0.0)
    size, unit = (3600.0, "h") if highest >= 7200 else (60.0, "min") if highest >= 120 else (1, "s")
    scaled = [(name, [v / size for v in values]) for name, values in bars.series]
    return _horizontal(
        Bars(bars.names, scaled, bars.left_out),
        width,
        unit=f"wait, {unit}",
        say=lambda value: words.duration(value * size),
    )


def _costs(figure: FigureOut, width: float) -> Drawing | None:
    priced = any(
        isinstance(row[index], int | float)
        for row in figure["rows"]
        for index, column in enumerate(figure["columns"])
        if column["key"] == "cost"
    )
    bars = _bars(figure, ("cost",) if priced else ("held",), name="tenant")
    return _horizontal(bars, width, unit=bars.series[0][0], legend=False)


def _values(figure: FigureOut, width: float) -> Drawing | None:
    bars = _bars(figure, ("value",), name="gpu_type")
    policies = [row[1] for row in figure["rows"] if row[2] is not None]
    if len(set(policies)) > 1:
        named = [f"{name}, {policy}" for name, policy in zip(bars.names, policies, strict=False)]
        bars = Bars(named, bars.series, bars.left_out)
    return _horizontal(bars, width, unit="worth of one more GPU, objective per round", legend=False)


def _fair(figure: FigureOut, width: float) -> Drawing | None:
    left = _bars(figure, ("median", "p90"), name="tenant")
    right = _bars(figure, ("deserved", "actual"), name="tenant")
    if not left.names:
        return None
    one = _horizontal(
        left, width * 0.5 if right.names else width, unit="rho; dashed: 1, fair", rule=1.0
    )
    if one is None or not right.names:
        return one
    shares = [(name, [v * 100 for v in values]) for name, values in right.series]
    two = _horizontal(
        Bars(right.names, shares, right.left_out), width * 0.48, unit="share of GPU time, %"
    )
    if two is None:
        return one
    both = Drawing(width, max(one.height, two.height))
    for part, x in ((one, 0.0), (two, width * 0.52)):
        for shape in part.contents:
            shape_group = _moved(shape, x, both.height - part.height)
            both.add(shape_group)
    return both


def _moved(shape: object, x: float, y: float) -> object:
    from reportlab.graphics.shapes import Group

    moved = Group(shape)
    moved.translate(x, y)
    return moved


def _horizontal(
    bars: Bars,
    width: float,
    *,
    unit: str,
    legend: bool = True,
    rule: float | None = None,
    say: Words | None = None,
) -> Drawing | None:
    """Draw bars to the right of their names, first on top, each with its number at its end.

    `say`: writes these numbers; by default with three figures.
    """
    if not bars.names:
        return None
    names = [_short(name) for name in reversed(bars.names)]
    left = min(max(stringWidth(name, PLAIN, _LABEL) for name in names) + 10, width * 0.42)
    tall = len(names) * (11 * len(bars.series) + 6)
    drawing = Drawing(width, tall + 30 + (18 if legend else 4))
    chart = HorizontalBarChart()
    chart.x, chart.y, chart.width, chart.height = left, 28, width - left - 48, tall
    # A horizontal chart counts from below: series and names are turned round.
    turned = list(reversed(bars.series))
    chart.data = [tuple(reversed(values)) for _, values in turned]
    chart.categoryAxis.categoryNames = names
    _style_bars(chart, len(bars.series), turned=True)
    chart.barLabels.fontName, chart.barLabels.fontSize = PLAIN, _SMALL
    chart.barLabelFormat = say or _three
    chart.barLabels.boxAnchor, chart.barLabels.nudge, chart.barLabels.fillColor = "w", 3, INK
    chart.valueAxis.valueMin = 0
    highest = max(max(values, default=0.0) for _, values in bars.series)
    chart.valueAxis.valueMax = _round_up(max(highest, rule or 0.0))
    chart.valueAxis.labelTextFormat = _three
    if rule is not None:  # behind the bars, whose numbers cover it
        x = left + chart.width * rule / chart.valueAxis.valueMax
        drawing.add(Line(x, 28, x, 28 + tall, strokeColor=INK, strokeDashArray=(3, 2)))
        chart.barLabels.boxFillColor = white
    drawing.add(chart)
    drawing.add(_text(left, 4, _and_more(unit, bars.left_out), MUTED))
    if legend:
        _legend(drawing, [name for name, _ in bars.series], x=left, y=tall + 38)
    return drawing


def _and_more(unit: str, left_out: int) -> str:
    return unit if not left_out else f"{unit}; {left_out} more in the CSV"


def _style_bars(chart: VerticalBarChart, series: int, *, turned: bool = False) -> None:
    for index in range(series):
        shade = SHADES[series - 1 - index if turned else index]
        chart.bars[index].fillColor = shade
        chart.bars[index].strokeColor = LINE if shade is LIGHT else shade
        chart.bars[index].strokeWidth = 0.4
    for axis in (chart.valueAxis, chart.categoryAxis):
        axis.labels.fontName, axis.labels.fontSize = PLAIN, _LABEL
        axis.labels.fillColor, axis.strokeColor = INK, LINE
    chart.categoryAxis.visibleTicks = 0
    chart.valueAxis.visibleGrid, chart.valueAxis.gridStrokeColor = 1, LINE
    chart.valueAxis.gridStrokeWidth, chart.valueAxis.visibleAxis = 0.3, 0
    chart.valueAxis.visibleTicks, chart.valueAxis.maximumTicks = 0, 6
    if isinstance(chart.valueAxis, XValueAxis):
        chart.valueAxis.labels.fillColor = MUTED


def _legend(drawing: Drawing, labels: Sequence[str], *, x: float, y: float) -> None:
    for label, shade in zip(labels, SHADES, strict=False):
        edge = LINE if shade is LIGHT else shade
        drawing.add(Rect(x, y, 8, 8, fillColor=shade, strokeColor=edge, strokeWidth=0.4))
        drawing.add(_text(x + 11, y + 1, label, INK))
        x += 22 + stringWidth(label, PLAIN, _LABEL)


def _text(x: float, y: float, text: str, colour: object, *, bold: bool = False) -> String:
    font = BOLD if bold else PLAIN
    return String(x, y, printable(text), fontName=font, fontSize=_LABEL, fillColor=colour)


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= NAME_CHARACTERS else f"{shown[: NAME_CHARACTERS - 1]}…"


def _grouped(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def _three(value: float) -> str:
    """Write a number at a bar or an axis with three figures."""
    if value == 0:
        return "0"
    return _grouped(value) if abs(value) >= 1000 else f"{value:.3g}"


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten with room for a label."""
    wanted = value * 1.12
    if wanted <= 0:
        return 1.0
    power = 10.0 ** (len(f"{wanted:e}") and int(f"{wanted:e}".split("e")[1]))
    return next(
        step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= wanted
    )


_DRAW: dict[Chart, Callable[[FigureOut, float], Drawing | None]] = {
    "hours": _hours,
    "waits": _waits,
    "costs": _costs,
    "values": _values,
    "shares-and-rho": _fair,
}
