"""What it costs to run commands: reports, reconciling, starts and stops. A table each.

All on the real parts: the service behind HTTP, PostgreSQL and SQLite, the local engine and its
processes, and for starts and stops the whole of `maat up`.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import training_lives, training_reconcile, training_reports
from benchmarks.table import Figures


def measure() -> Sequence[Figures]:
    return [
        training_reports.measure(),
        training_reconcile.measure(),
        *training_lives.measure(),
    ]
