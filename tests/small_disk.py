"""A small disk of a test's own, which it can fill up."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path


class SmallDisk:
    """A disk of four MiB at a folder. Only root can mount one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self) -> bool:
        """Return whether it could be mounted."""
        words = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(self.path)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    def fill(self) -> None:
        with suppress(OSError), (self.path / "rest").open("wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4096))

    def make_room(self) -> None:
        (self.path / "rest").unlink()
