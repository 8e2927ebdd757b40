"""The distribution fair-queues of this folder, installed by pip into a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def installed(folder: Path) -> Path:
    """Install it below a folder, without the network; return where Python is to look for it."""
    source, target = folder / "source", folder / "installed"
    shutil.copytree(Path(__file__).parent / "distribution", source)
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target")
    command = (sys.executable, "-m", "pip", "install", *options, str(target), str(source))
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return target


def uninstall(target: Path) -> None:
    """Remove the distribution from the folder into which it was installed."""
    shutil.rmtree(target)
    target.mkdir()


def environment_with(target: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process that finds the distribution."""
    return {**os.environ, "PYTHONPATH": f"{target}{os.pathsep}{ROOT}", **more}
