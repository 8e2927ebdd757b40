"""What the agent says, in the log of its process."""

from __future__ import annotations

import sys
from contextlib import suppress


def say(words: str) -> None:
    """Write a line. Never raises: training goes on though its log's disk is full, or it has none.

    Past the buffer of sys.stdout: a line left there would be written again at the end, where Python
    takes its failure for one of the script.
    """
    line = f"maat: {words}\n"
    with suppress(Exception):
        try:
            descriptor = sys.stdout.fileno()
        except (AttributeError, OSError, ValueError):  # none, closed, or no file, as in a notebook
            print(line, end="", flush=True)
            return
        with suppress(OSError):
            sys.stdout.flush()  # what the script has printed comes first
        with open(descriptor, "wb", buffering=0, closefd=False) as log:
            log.write(line.encode(errors="replace"))
