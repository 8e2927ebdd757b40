"""The page that shows all pictures beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

STYLE = """
body { font: 14px sans-serif; margin: 16px; background: #888; }
h2 { margin: 24px 0 4px; }
.row { display: flex; gap: 8px; align-items: flex-start; overflow-x: auto; }
figure { margin: 0; }
img { height: 480px; max-width: none; border: 1px solid #444; }
"""


def write_gallery(
    folder: Path, names: Sequence[str], schemes: Sequence[str], widths: Sequence[int]
) -> Path:
    """Write index.html: a row for each picture and colour scheme; returns its path.

    Only files that are there are shown. A picture leads to itself in full size.
    """
    parts = []
    for name in names:
        rows = [
            _row(folder, [file_name(name, scheme, width) for width in widths]) for scheme in schemes
        ]
        if any(rows):
            parts.append(f'<h2 id="{escape(name)}">{escape(name)}</h2>\n' + "\n".join(rows))
    page = folder / "index.html"
    page.write_text(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Pages of Maat</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
    return page


def file_name(name: str, scheme: str, width: int) -> str:
    return f"{name}.{scheme}.{width}.png"


def _row(folder: Path, files: Sequence[str]) -> str:
    shown = [
        f'<figure><a href="{escape(file)}"><img loading="lazy" src="{escape(file)}" '
        f'alt="{escape(file)}"></a><figcaption>{escape(file)}</figcaption></figure>'
        for file in files
        if (folder / file).exists()
    ]
    return f'<div class="row">{"".join(shown)}</div>' if shown else ""
