"""The command as a process, and within this one: to start Python takes most of a process's time."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from subprocess import CompletedProcess
from unittest.mock import patch

from maat.__main__ import main

PLAIN = {"NO_COLOR": "1", "COLUMNS": "200"}  # colours and width as on no terminal


def maat(*arguments: str) -> CompletedProcess[str]:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, PLAIN),
        patch.object(sys, "argv", ["maat", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def maat_process(*arguments: str) -> CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "maat", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **PLAIN},
        timeout=120,
    )


HEADER = "name,time,application,num_replicas,batch_size,work_scale\n"
ROWS = "a,0,cifar10,1,128,0.05\nb,60.5,bert,2,24,0.02\n"
SMALL = ("--cluster", "t4=2x4")


def only_line(code: int | str | None, stdout: str, stderr: str) -> str:
    """Return the one line of a refusal: exit code 2, no traceback, no result."""
    assert code == 2, (stdout, stderr)
    assert stdout == ""
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("maat: ")
    return lines[0].removeprefix("maat: ")
