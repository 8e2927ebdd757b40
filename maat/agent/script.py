"""The training script as the agent sees it: at which line it is, and why it is stopped there."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from pathlib import Path

import torch

_LIBRARIES = (
    *(str(Path(each).parent) + os.sep for each in (__file__, torch.__file__)),
    sysconfig.get_path("stdlib") + os.sep,
    "<",
)
_INSTALLED = ("site-packages", "dist-packages")


class ScriptError(RuntimeError):
    """The script does what would train something else under Maat; says which line to change."""

    def __init__(self, words: str, *, at: tuple[str, int] | None = None) -> None:
        """`at`: file and number of the line; None for the one that the script is at."""
        line = script_line() if at is None else shown_line(*at)
        super().__init__(words if line is None else f"{line}: {words}")


class ScriptTypeError(ScriptError, TypeError):
    """The script gives the agent what it cannot work with."""


def is_script(file: str) -> bool:
    """Return whether code is the script's: not a library's, nor Python's."""
    return not file.startswith(_LIBRARIES) and not any(each in file for each in _INSTALLED)


def script_line() -> str | None:
    """Return the line that the script is at, as in train.py:31 `optimiser.step()`.

    None where no line of it leads here, as in a backward pass on a GPU, which has its own thread.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if is_script(frame.f_code.co_filename):
            return shown_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def shown_line(file: str, number: int) -> str:
    """Return a line of the script as errors show it."""
    text = linecache.getline(file, number).strip()
    return f"{Path(file).name}:{number} `{text}`" if text else f"{Path(file).name}:{number}"
