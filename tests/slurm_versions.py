"""Answers of Slurm by version: one site as every version writes it (tests/data/slurm/README.md)."""

from __future__ import annotations

from pathlib import Path

ANSWERS = Path(__file__).parent / "data" / "slurm"
VERSIONS = ("21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05")
WITH_SINFO_GROUPS = VERSIONS[2:]  # and with `scontrol show node --json`


def answers(name: str) -> list[Path]:
    """Return the files of this name, of all versions that have one."""
    found = sorted(ANSWERS.glob(f"*/{name}"))
    assert found, f"no version has {name}"
    return found


def version_of(file: Path) -> str:
    return file.parent.name
