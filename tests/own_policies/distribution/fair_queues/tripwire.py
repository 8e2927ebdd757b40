"""Leaves a trace wherever it is imported: no request may bring that about."""

import os
from pathlib import Path

from fair_queues.longest import LongestFirst as LongestFirst

if "FAIR_QUEUES_TRIPWIRE" in os.environ:
    Path(os.environ["FAIR_QUEUES_TRIPWIRE"]).touch()
