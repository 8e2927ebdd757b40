"""What tests of the worker share: migrated databases, and a small live cluster in one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent / "backend")
)  # the databases are the service's

from database_fixtures import *  # noqa: F403
