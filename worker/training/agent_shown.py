"""Whether the script of an attempt uses maat.agent, before it has reported."""

from __future__ import annotations

from pathlib import Path

from backend.attempts.folders import attempt_folder
from backend.models import AttemptRow
from worker.engines.protocol import Phase, Seen

SHOWN = "agent"  # the file that the agent leaves in the attempt's folder as it starts


def has_agent(root: Path, row: AttemptRow, seen: Seen | None) -> bool:
    """Return whether a script has begun the agent; True where that is not asked.

    `root`: the cluster's folder. A file system that nodes share may show a new file late.
    """
    is_asked = row.reports and row.reported_seconds is None and row.launched
    if not is_asked or seen is None or seen.phase not in (Phase.RUNNING, Phase.ENDED):
        return True
    return (attempt_folder(root, row.id) / SHOWN).exists()
