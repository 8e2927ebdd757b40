"""An item as data, in Markdown and in HTML; and all items of a paper as one report."""

from __future__ import annotations

import html
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from maat.papers.bench import Size
from maat.papers.layout import layout
from maat.papers.reproducing import Reproduced

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2128 }
body { max-width: 980px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.5rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid #e2e5ea; text-align: left }
td.number, th.number { text-align: right }
nav a { margin-right: 1rem } .note { color: #59636e } .figure { overflow-x: auto }
"""
NUMBER = ' class="number"'


def as_data(made: Reproduced) -> Mapping[str, Any]:
    """Return an item as plain data, as `maat reproduce --json` prints it."""
    return {
        "paper": made.paper.name,
        "item": made.item.key,
        "title": made.title,
        "failed": made.failed,
        "emulated": made.item.emulated,
        "rows": list(made.table),
        "why": made.why,
        "notes": list(made.notes),
        "cpu_minutes": round(made.cpu_seconds / 60, 2),
    }


def as_markdown(item: Mapping[str, Any]) -> str:
    """Return an item's data in Markdown: title, table, sentence, notes."""
    lines = [f"## {title_of(item)}", ""]
    table = layout(item["rows"])
    if table.rows:
        heads = [*table.words, *table.numbers]
        lines += [_line(heads), _line("---" for _ in heads), *map(_line, table.rows)]
    lines += ["", item["why"], *(f"\n{note}" for note in _notes(item)), ""]
    return "\n".join(lines)


def _notes(item: Mapping[str, Any]) -> list[str]:
    """Return what stood in for published data, and what its simulations cost."""
    spent = item["cpu_minutes"]
    cost = [f"CPU time of its simulations: {spent:.2g} min."] if spent else []
    return [*item["notes"], *cost]


def report_markdown(
    title: str, size: Size, items: Sequence[Mapping[str, Any]], *, made: str
) -> str:
    """Return a paper's report in Markdown; its figures are the SVG files beside it.

    `made`: a sentence on how it was made.
    """
    parts = [f"# {title}", f"{made} {_of_size(size)}"]
    for item in items:
        picture = f"\n![{title_of(item)}]({item['item']}.svg)\n" if item["pictures"] else ""
        parts.append(as_markdown(item) + picture)
    return "\n\n".join(parts)


def report_html(title: str, size: Size, items: Sequence[Mapping[str, Any]], *, made: str) -> str:
    """Return a paper's report in one HTML page that needs nothing else. `made`: as in Markdown."""
    from plotly.offline import get_plotlyjs

    drawn = any(item["figure"] is not None for item in items)
    script = f"<script>{get_plotlyjs()}</script>" if drawn else ""
    links = "".join(
        f'<a href="#{html.escape(item["item"])}">{html.escape(_name(item["item"]))}</a>'
        for item in items
    )
    parts = "".join(map(_section, items))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style>{script}<h1>{html.escape(title)}</h1>"
        f"<p>{html.escape(f'{made} {_of_size(size)}')}</p><nav>{links}</nav>{parts}</html>"
    )


def _section(item: Mapping[str, Any]) -> str:
    key = html.escape(item["item"])
    table = layout(item["rows"])
    sides = [""] * len(table.words) + [NUMBER] * len(table.numbers)
    head = _cells("th", sides, [*table.words, *table.numbers])
    body = "".join(f"<tr>{_cells('td', sides, row)}</tr>" for row in table.rows)
    sentences = f"<p>{html.escape(item['why'])}</p>" + "".join(
        f'<p class="note">{html.escape(note)}</p>' for note in _notes(item)
    )
    return (
        f'<section id="{key}"><h2>{html.escape(title_of(item))}</h2>{_figure(item)}'
        f"<table><tr>{head}</tr>{body}</table>{sentences}</section>"
    )


def _figure(item: Mapping[str, Any]) -> str:
    if item["figure"] is None:
        return ""
    name = f"figure-{html.escape(item['item'])}"
    # "</" would end the script wherever a text has it
    data = json.dumps(item["figure"]).replace("</", "<\\/")
    return (
        f'<div class="figure" id="{name}"></div><script>{{const drawn = {data};'
        f'Plotly.newPlot("{name}", drawn.data, drawn.layout, {{responsive: true}})}}</script>'
    )


def _cells(tag: str, sides: Sequence[str], texts: Sequence[str]) -> str:
    return "".join(
        f"<{tag}{side}>{html.escape(text)}</{tag}>" for side, text in zip(sides, texts, strict=True)
    )


def _line(cells: Iterable[str]) -> str:
    escaped = (text.replace("|", "\\|") for text in cells)
    return f"| {' | '.join(escaped)} |"


def title_of(item: Mapping[str, Any]) -> str:
    """Return the heading of an item in a report."""
    emulated = " (emulated devices)" if item["emulated"] else ""
    return f"{_name(item['item'])}: {item['title']}{emulated}"


def machine() -> str:
    """Return the processor as the system names it, and how many cores there are."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((at.partition(": ")[2] for at in lines if at.startswith("model name")), name)
    return f"{os.cpu_count()} cores of {name}"


def _of_size(size: Size) -> str:
    return (
        "All runs." if size is Size.WHOLE else "Quick: fewer traces and seeds than the paper has."
    )


def _name(key: str) -> str:
    """Return an item's name in words: `fig-8` is Figure 8."""
    kind, _, rest = key.partition("-")
    word = {"fig": "Figure", "table": "Table", "sec": "Section"}.get(kind)
    return f"{word} {rest}" if word else key.replace("-", " ").capitalize()
