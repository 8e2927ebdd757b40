"""Lays a report out on pages. The same document gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    KeepTogether,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)

from backend.reports.pdf import style
from backend.reports.pdf.charts import drawing_of
from backend.reports.pdf.kept import Kept
from backend.reports.pdf.tables import TABLE, table_of
from maat.api.reports import FigureOut, HeadlineOut, Paper, ReportOut

MARGIN, FOOT = 18 * mm, 14 * mm
FIRST_ROWS = 80 * mm  # of a table: so much of it stands on the page of its chart
TALL = 10_000.0  # points: higher than a page


def pdf_of(report: ReportOut, *, paper: Paper = Paper.A4, kept: Kept | None = None) -> bytes:
    """Return the report as PDF. Raises nothing for any text in it."""
    style.load_fonts()
    out, page = BytesIO(), style.PAGES[paper]
    document = BaseDocTemplate(
        out,
        pagesize=page,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
        topMargin=MARGIN,
        bottomMargin=MARGIN + FOOT,
        title=style.printable(f"Cluster report: {report['title']}"),
        author="Maat",
        subject=style.printable(report["summary"]),
        lang="en",
        invariant=1,
    )
    width = page[0] - 2 * MARGIN
    frame = Frame(
        MARGIN,
        MARGIN + FOOT / 2,
        width,
        page[1] - 2 * MARGIN - FOOT / 2,
        leftPadding=0,
        rightPadding=0,
        topPadding=0,
        bottomPadding=0,
    )
    document.addPageTemplates([PageTemplate("page", [frame])])
    document.build(
        list(_story(report, width, kept)),
        canvasmaker=lambda *given, **named: _Numbered(
            *given, foot=_foot(report, kept), **{**named, "invariant": 1}
        ),
    )
    return out.getvalue()


def _foot(report: ReportOut, kept: Kept | None) -> str:
    as_of = report["as_of"][:16].replace("T", " ")
    made = f"made {kept.made_at[:10]}, {kept.report_id}" if kept else f"as of {as_of} UTC, not kept"
    return style.printable(f"{_cut(report['title'], 80)} · {made}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _story(report: ReportOut, width: float, kept: Kept | None) -> Iterator[Flowable]:
    yield Paragraph("Cluster report", style.TITLE)
    yield Paragraph(style.markup(report["title"]), style.HEADING)
    yield Paragraph(style.markup(report["summary"]), style.SUBTITLE)
    yield _tiles(report["headlines"], width)
    yield Spacer(1, 4 * mm)
    if report["caveats"]:
        yield from _caveats(report["caveats"])
        yield Spacer(1, 2 * mm)
    for figure in report["figures"]:
        yield from _figure(figure, width)
    yield from _about(report, width, kept)


class _Heading(Paragraph):  # type: ignore[misc]  # the library has no types
    """A heading that the outline of the PDF lists."""

    def __init__(self, text: str) -> None:
        super().__init__(style.markup(text), style.HEADING)
        self._title = style.printable(text)

    def draw(self) -> None:
        key = f"heading-{self._title}"
        self.canv.bookmarkPage(key)
        self.canv.addOutlineEntry(self._title, key, level=0)
        super().draw()


def _tiles(headlines: Sequence[HeadlineOut], width: float) -> Table:
    """Draw the headline numbers in rows of three."""
    cells = [_tile(one) for one in headlines]
    cells += [[]] * (-len(cells) % 3)
    rows = [cells[at : at + 3] for at in range(0, len(cells), 3)]
    table = Table(rows, colWidths=[width / 3] * 3)
    table.setStyle(
        TableStyle(
            [
                ("BOX", (0, 0), (-1, -1), 0.6, style.LINE),
                ("INNERGRID", (0, 0), (-1, -1), 0.6, style.LINE),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("TOPPADDING", (0, 0), (-1, -1), 5),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 6),
                ("LEFTPADDING", (0, 0), (-1, -1), 8),
            ]
        )
    )
    return table


def _tile(one: HeadlineOut) -> list[Flowable]:
    before = f"{one['shown_change']} from {one['shown_before']}"
    if one["before"] is None:
        before = "no figure for the period before"
    return [
        Paragraph(style.markup(one["label"]), style.TILE_LABEL),
        Paragraph(style.markup(one["shown"]), style.TILE_VALUE),
        Paragraph(style.markup(before), style.TILE_LABEL),
    ]


def _figure(figure: FigureOut, width: float) -> Iterator[Flowable]:
    """Lay out a figure: question, answer, chart and the first rows of its table stay together.

    A long table goes on over pages; what stands below it stays with its last rows.
    """
    head: list[Flowable] = [
        _Heading(figure["question"]),
        Paragraph(style.markup(figure["answer"]), style.ANSWER),
    ]
    drawn = drawing_of(figure, width)
    if drawn is not None:
        head.append(drawn)
    foot = [Spacer(1, 1.5 * mm), *_caveats(figure["caveats"]), *_source(figure)]
    if figure["rows"]:
        table = table_of(figure, width, foot=foot)
        head.append(Spacer(1, 2 * mm))
        yield CondPageBreak(_height(head, width) + min(_height([table], width), FIRST_ROWS))
        yield from [*head, table]
    else:
        yield KeepTogether([*head, *foot])
    yield Spacer(1, 5 * mm)


def _height(parts: Sequence[Flowable], width: float) -> float:
    """Return how high parts are below each other, with the spaces between them."""
    each = (
        part.wrap(width, TALL)[1] + part.getSpaceBefore() + part.getSpaceAfter() for part in parts
    )
    return float(sum(each))


def _caveats(caveats: Sequence[str]) -> list[Flowable]:
    return [Paragraph(style.markup(text), style.CAVEAT, bulletText="•") for text in caveats]


def _source(figure: FigureOut) -> list[Flowable]:
    policies = ", ".join(figure["policy_versions"]) or "no policy decided"
    lines = (
        ("Formula", figure["formula"]),
        ("Window", figure["window"]),
        ("Policy", policies),
    )
    return [Paragraph(f"<b>{name}:</b> {style.markup(text)}", style.NOTE) for name, text in lines]


def _about(report: ReportOut, width: float, kept: Kept | None) -> Iterator[Flowable]:
    rows = [
        [
            f"{one['policy']} {one['version'][:8]}".strip(),
            one["placer"],
            one["from"][:16].replace("T", " "),
            one["to"][:16].replace("T", " "),
            f"{one['hours']:.1f}",
            str(one["rounds"]),
        ]
        for one in report["policies"]
    ]
    parts: list[Flowable] = [_Heading("About this report")]
    if rows:
        names = ("Policy", "Placer", "From", "To", "Hours", "Rounds")
        cells = [[Paragraph(name, style.CELL_BOLD) for name in names]]
        cells += [[Paragraph(style.markup(cell), style.CELL) for cell in row] for row in rows]
        table = Table(cells, colWidths=[width / 6] * 6, repeatRows=1)
        table.setStyle(TableStyle(TABLE))
        parts += [table, Spacer(1, 2 * mm)]
    told = [
        "Times are the cluster's own, shown in UTC. The letters behind a policy's name are the "
        "digest of its parameters.",
        f"Written by Maat {report['maat_version']} at cluster time {report['as_of'][:16]}.",
        " ".join(f"{one['label']}: {one['formula']}" for one in report["headlines"]),
    ]
    if kept:
        told.append(
            f"Report {kept.report_id}, made {kept.made_at}. SHA-256 of its document: "
            f"{kept.checksum}."
        )
    parts += [Paragraph(style.markup(text), style.NOTE) for text in told]
    yield CondPageBreak(50 * mm)
    yield from parts


class _Numbered(Canvas):  # type: ignore[misc]  # the library has no types
    """Numbers the pages once all are laid out: page 2 of 4."""

    def __init__(self, *given: Any, foot: str, **named: Any) -> None:
        super().__init__(*given, **named)
        self._foot, self._pages = foot, list[dict[str, Any]]()

    def showPage(self) -> None:  # noqa: N802  (the library's name)
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        pages = self._pages
        for number, state in enumerate(pages, start=1):
            self.__dict__.update(state)
            self._draw_foot(number, len(pages))
            super().showPage()
        super().save()

    def _draw_foot(self, number: int, count: int) -> None:
        width = self._pagesize[0]
        self.setStrokeColor(style.LINE)
        self.setLineWidth(0.5)
        self.line(MARGIN, FOOT + 6, width - MARGIN, FOOT + 6)
        self.setFillColor(style.MUTED)
        self.setFont(style.PLAIN, 8)
        self.drawString(MARGIN, FOOT - 6, self._foot)
        self.drawRightString(width - MARGIN, FOOT - 6, f"page {number} of {count}")
