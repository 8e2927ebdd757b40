"""Contracts use the service's databases and the worker's small live cluster."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("backend", "worker"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
