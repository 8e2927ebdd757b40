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

    def __init__(self, words: str) -> None:
        line = script_line()
        super().__init__(words if line is None else f"{line}: {words}")


class ScriptTypeError(ScriptError, TypeError):
    """The script gives the agent what it cannot work with."""


def script_line() -> str | None:
    """Return the line that the script is at, as in train.py:31 `optimiser.step()`.

    None where no line of it leads here, as in a backward pass on a GPU, which has its own thread.
    """
    frame = sys._getframe(1)
    while frame is not None:
        name, number = frame.f_code.co_filename, frame.f_lineno
        if not name.startswith(_LIBRARIES) and not any(each in name for each in _INSTALLED):
            text = linecache.getline(name, number).strip()
            return f"{Path(name).name}:{number} `{text}`" if text else f"{Path(name).name}:{number}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
