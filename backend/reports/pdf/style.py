"""Fonts, greys and paragraph styles of the PDF."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from xml.sax.saxutils import escape

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4, LETTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from maat.api.reports import Paper

FONTS = Path(__file__).parent / "fonts"
PLAIN, BOLD = "DejaVuSansCondensed", "DejaVuSansCondensed-Bold"
PAGES = {Paper.A4: A4, Paper.LETTER: LETTER}
UNKNOWN = "\ufffd"  # stands for a character that the fonts do not have

INK, MUTED, LINE, FAINT = (
    HexColor("#1c2128"),
    HexColor("#59636e"),
    HexColor("#b9c0c9"),
    HexColor("#f1f3f6"),
)
# Told apart by lightness, so that they are in black and white too.
DARK, MIDDLE, LIGHT = HexColor("#123f7a"), HexColor("#7ea6d8"), HexColor("#e3e8ef")
SHADES: tuple[Color, ...] = (DARK, MIDDLE, LIGHT)


@lru_cache(maxsize=1)
def load_fonts() -> frozenset[int]:
    """Make the fonts known to the library, once; return the characters that both have."""
    known: list[set[int]] = []
    for name in (PLAIN, BOLD):
        font = TTFont(name, str(FONTS / f"{name}.ttf"))
        pdfmetrics.registerFont(font)
        known.append(set(font.face.charToGlyph))
    pdfmetrics.registerFontFamily(PLAIN, normal=PLAIN, bold=BOLD, italic=PLAIN, boldItalic=BOLD)
    return frozenset(known[0] & known[1])


def printable(text: str) -> str:
    """Replace characters that the fonts do not have by one that says so."""
    known = load_fonts()
    return "".join(letter if ord(letter) in known else UNKNOWN for letter in text)


def markup(text: str) -> str:
    """Make a text safe within a paragraph, whose library reads tags."""
    return escape(printable(text))


def _style(name: str, size: float, leading: float, **more: object) -> ParagraphStyle:
    given = {"fontName": PLAIN, "textColor": INK, "fontSize": size, "leading": leading, **more}
    return ParagraphStyle(name, **given)


TITLE = _style("title", 20, 24, fontName=BOLD)
SUBTITLE = _style("subtitle", 11, 15, textColor=MUTED, spaceAfter=8)
HEADING = _style("heading", 14, 18, fontName=BOLD, spaceBefore=4, spaceAfter=2)
ANSWER = _style("answer", 10.5, 14.5, spaceAfter=6)
NOTE = _style("note", 8, 10.6, textColor=MUTED, spaceAfter=2)
CAVEAT = _style("caveat", 8.5, 11.5, spaceAfter=2, leftIndent=10, bulletIndent=0)
CELL = _style("cell", 8.5, 10.5)
CELL_BOLD = _style("cell-bold", 8.5, 10.5, fontName=BOLD)
FIGURE_CELL = _style("figure-cell", 8.5, 10.5, alignment=TA_RIGHT)
FIGURE_CELL_BOLD = _style("figure-cell-bold", 8.5, 10.5, alignment=TA_RIGHT, fontName=BOLD)
TILE_LABEL = _style("tile-label", 8.5, 11, textColor=MUTED)
TILE_VALUE = _style("tile-value", 17, 21, fontName=BOLD)
