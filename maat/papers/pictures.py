"""Figures as pictures, SVG and PNG: drawn by one Chrome, if there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH, HEIGHT, PNG_SCALE = 900, 540, 2
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Pictures:
    """Draws figures with one Chrome, which starts with the first; `why_none` says why it cannot.

    >>> with Pictures() as pictures:
    ...     pictures.why_none
    """

    def __init__(self) -> None:
        self.why_none: str | None = None
        self._started = False

    def __enter__(self) -> Pictures:
        return self

    def __exit__(self, *_: object) -> None:
        if self._started:
            import kaleido

            kaleido.stop_sync_server(silence_warnings=True)

    def of(self, figure: go.Figure) -> Mapping[str, bytes]:
        """Return the figure by its file's ending, `svg` and `png`; nothing without a Chrome."""
        if self.why_none is not None or not self._start():
            return {}
        try:
            return {
                "svg": _drawn(figure, {"format": "svg"}),
                "png": _drawn(figure, {"format": "png", "scale": PNG_SCALE}),
            }
        except Exception as failed:  # whatever a browser that ends or hangs makes of it
            self.why_none = f"SVG and PNG are not written: the browser failed ({failed})."
            return {}

    def _start(self) -> bool:
        if self._started:
            return True
        try:
            import kaleido
        except ModuleNotFoundError:
            self.why_none = "SVG and PNG are not written: install 'maat[plot]', which draws them."
            return False
        browser = os.environ.get("BROWSER_PATH") or next(
            filter(None, map(shutil.which, BROWSERS)), None
        )
        if browser is None:
            self.why_none = (
                "SVG and PNG are not written: there is no Chrome. Install one, or name it in "
                "BROWSER_PATH; the HTML is written."
            )
            return False
        kaleido.start_sync_server(path=browser, silence_warnings=True)
        self._started = True
        return True


def _drawn(figure: go.Figure, options: Mapping[str, object]) -> bytes:
    import kaleido

    size = {"width": figure.layout.width or WIDTH, "height": figure.layout.height or HEIGHT}
    drawn: bytes = kaleido.calc_fig_sync(figure.to_plotly_json(), opts={**size, **options})
    return drawn
