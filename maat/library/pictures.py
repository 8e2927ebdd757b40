"""Figures as files: SVG, PNG and PDF, which one Chrome draws, and HTML, which needs none."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from maat.library.files import check_writable, path_of, write_whole
from maat.scheduling.errors import InputError, MaatError, ParameterError

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH, HEIGHT, PNG_SCALE = 900, 540, 2
END_SECONDS = 10.0
DRAW_SECONDS = 120.0  # of one picture, the start of the browser included
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
INSTALL_CHROME = "Install Chrome or Chromium, or name it in BROWSER_PATH"
INSTALL_PLOT = "Install what draws it: pip install 'maat[plot]'"
HTML = "html"
FORMS = ("svg", "png", "pdf", HTML)

Answer = TypeVar("Answer")


def save_figure(figure: go.Figure, path: str | Path) -> None:
    """Write a figure to a file: a picture (.svg, .png, .pdf), or a page (.html).

    The page is interactive and needs nothing else. The file is written whole or not at all.

    Raises InputError for another suffix, a folder that cannot be written, and where no picture can
    be drawn; MaatError if there is no space.

    Args:
        figure: Such as `run.plot.jct_cdf()`.
        path: Its suffix says as what it is written.

    >>> import maat
    >>> run = maat.simulate(maat.generate(jobs=5, hours=1, seed=1), policy="fifo")
    >>> maat.save_figure(run.plot.jct_cdf(), "jct.jpeg")
    Traceback (most recent call last):
    ...
    maat.scheduling.errors.InputError: path: has no suffix of a figure (got 'jct.jpeg'). End it in .svg, .png, .pdf or .html.
    """  # noqa: E501
    write_figure(figure, path_of(path, field="path"), field="path")


def write_figure(figure: go.Figure, path: Path, *, field: str) -> None:
    """Write a figure to a file; `field`: what names it. Raises as `save_figure`."""
    import plotly.graph_objects as go

    if not isinstance(figure, go.Figure):
        raise ParameterError(
            "is no figure of plotly",
            field="figure",
            value=type(figure).__name__,
            remedy="Give for example run.plot.jct_cdf().",
        )
    form = _form_of(path, field=field)
    check_writable(path, field=field)
    write_whole(path, _content(figure, form, path, field=field), field=field)


def check_figure_path(path: Path, *, field: str, inputs: Sequence[Path] = ()) -> None:
    """Check before the work that a figure can be drawn and written there.

    Starts a browser for a moment if one draws it. `field`: what names the path; `inputs`: files
    that are not overwritten. Raises InputError.
    """
    form = _form_of(path, field=field)
    check_writable(path, field=field, inputs=inputs)
    try:
        import plotly.graph_objects  # noqa: F401
    except ModuleNotFoundError as missing:
        raise InputError(
            "cannot be drawn: plotly is missing",
            field=field,
            value=str(path),
            remedy=f"{INSTALL_PLOT}.",
        ) from missing
    if form != HTML:
        with Pictures() as pictures:
            try:
                pictures.start()
            except NoPictures as why:
                raise _refusal(why, path, field) from why


class NoPictures(MaatError):
    """No picture can be drawn here: why, and the remedy."""

    def __init__(self, why: str, remedy: str = INSTALL_CHROME) -> None:
        super().__init__(why)
        self.remedy = remedy


class Pictures:
    """Draws figures with one Chrome, which starts with the first.

    >>> with Pictures() as pictures:
    ...     pictures.why_none
    """

    def __init__(self) -> None:
        self.why_none: str | None = None
        self._browser: _Browser | None = None

    def __enter__(self) -> Pictures:
        return self

    def __exit__(self, *_: object) -> None:
        if self._browser is not None:
            self._browser.close()

    def start(self) -> None:
        """Start the browser, unless it runs. Raises NoPictures."""
        self._started()

    def drawn(self, figure: go.Figure, form: str) -> bytes:
        """Return the figure as `svg`, `png` or `pdf`. Raises NoPictures."""
        return self._started().draw(figure, form)

    def of(self, figure: go.Figure) -> Mapping[str, bytes]:
        """Return the figure as `svg` and `png`; nothing without a Chrome: see `why_none`."""
        if self.why_none is None:
            try:
                return {form: self.drawn(figure, form) for form in ("svg", "png")}
            except NoPictures as why:
                self.why_none = f"SVG and PNG are not written, HTML is: {why}. {why.remedy}."
        return {}

    def _started(self) -> _Browser:
        if self._browser is None:
            self._browser = _Browser(_browser_path())
        return self._browser


class _Browser:
    """A Chrome with plotly in it, in a thread with a loop of its own: a notebook's loop is busy."""

    def __init__(self, path: str) -> None:
        try:
            import kaleido
        except ModuleNotFoundError as missing:
            raise NoPictures("kaleido is missing", INSTALL_PLOT) from missing
        logging.getLogger("choreographer").setLevel(logging.ERROR)  # NoPictures says its warnings
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def opened() -> kaleido.Kaleido:
            made = kaleido.Kaleido(path=path, mathjax=False)  # which it would fetch
            try:
                await made.open()
            except BaseException:
                await made.close()
                raise
            return made

        try:
            self._kaleido = self._result(opened())
        except NoPictures:
            self._end()
            raise

    def draw(self, figure: go.Figure, form: str) -> bytes:
        """Return the figure as a picture. Raises NoPictures."""
        size = {"width": figure.layout.width or WIDTH, "height": figure.layout.height or HEIGHT}
        scale = {"scale": PNG_SCALE} if form == "png" else {}
        options = {"format": form, **size, **scale}
        work = self._kaleido.calc_fig(figure.to_plotly_json(), opts=options)
        picture: bytes = self._result(work)
        return picture

    def close(self) -> None:
        with suppress(NoPictures):  # it has ended already
            self._result(self._kaleido.close())
        self._end()

    def _end(self) -> None:
        """End the loop, and first what still runs in it: kaleido leaves its watchdog behind."""
        asyncio.run_coroutine_threadsafe(_others_ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _result(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return asked.result(DRAW_SECONDS)
        except Exception as failed:  # whatever a browser that ends or hangs makes of it
            asked.cancel()
            words = str(failed.args[0]) if failed.args else type(failed).__name__
            raise NoPictures(f"the browser failed ({words.rstrip('.')})") from failed


async def _others_ended() -> None:
    """Cancel all other tasks of this loop, and wait until they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=END_SECONDS)


def _browser_path() -> str:
    """Return the Chrome that BROWSER_PATH names, or one on the path. Raises NoPictures."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        found = shutil.which(named)
        if found is None:
            raise NoPictures(f"BROWSER_PATH names no browser, but {named}")
        return found
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise NoPictures("there is no Chrome")
    return browser


def _content(figure: go.Figure, form: str, path: Path, *, field: str) -> bytes:
    if form == HTML:
        page: str = figure.to_html(include_plotlyjs=True, full_html=True)
        return page.encode()
    with Pictures() as pictures:
        try:
            return pictures.drawn(figure, form)
        except NoPictures as why:
            raise _refusal(why, path, field) from why


def _form_of(path: Path, *, field: str) -> str:
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise InputError(
            "has no suffix of a figure",
            field=field,
            value=str(path),
            remedy=f"End it in {', '.join(f'.{each}' for each in FORMS[:-1])} or .{FORMS[-1]}.",
        )
    return form


def _refusal(why: NoPictures, path: Path, field: str) -> InputError:
    remedy = f"{why.remedy}; or end it in .html, which needs no browser."
    return InputError(f"cannot be drawn: {why}", field=field, value=str(path), remedy=remedy)
