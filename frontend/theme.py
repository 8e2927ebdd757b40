"""The look of pages: the Mantine theme. Colours and inks are those of `maat.figures.theme`."""

from __future__ import annotations

from maat.figures.theme import FONT

_ACCENT = [
    "#eef4ff",
    "#dbe7fd",
    "#b5cdf8",
    "#8cb2f4",
    "#6a9bf0",
    "#4f86e6",
    "#3a73d6",
    "#1f5fbf",
    "#184d9c",
    "#103b7a",
]

_DARK = [
    "#e6e9ee",
    "#c3cad4",
    "#9aa4b1",
    "#6b7684",
    "#4a535f",
    "#363d47",
    "#262c35",
    "#1b1f26",
    "#14171c",
    "#0f1216",
]

MANTINE_THEME = {
    "fontFamily": FONT,
    "fontFamilyMonospace": (
        "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'Liberation Mono', monospace"
    ),
    "primaryColor": "accent",
    "primaryShade": {"light": 7, "dark": 4},
    "autoContrast": True,
    "colors": {"accent": _ACCENT, "dark": _DARK},
    "defaultRadius": "sm",
    "respectReducedMotion": True,
    "headings": {
        "fontWeight": "600",
        "sizes": {
            "h1": {"fontSize": "20px", "lineHeight": "28px"},
            "h2": {"fontSize": "14px", "lineHeight": "20px"},
        },
    },
    "fontSizes": {"xs": "12px", "sm": "13px", "md": "14px", "lg": "16px", "xl": "20px"},
}
