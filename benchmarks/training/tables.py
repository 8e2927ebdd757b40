"""What it costs to run commands: reports, reconciling, starts and stops. A table each.

All on the real parts: the service behind HTTP, PostgreSQL and SQLite, the local engine and its
processes, and for starts and stops the whole of `maat up`.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.table import Figures
from benchmarks.training import lives, reconcile, reports


def measure() -> Sequence[Figures]:
    return [
        reports.measure(),
        reconcile.measure(),
        *lives.measure(),
    ]
