"""What tests that kill processes share: migrated databases, real brokers, and the live cluster of the worker's tests."""

from __future__ import annotations

import sys
from pathlib import Path

for shared in ("backend", "worker"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / shared))

from database_fixtures import *  # noqa: E402, F403
