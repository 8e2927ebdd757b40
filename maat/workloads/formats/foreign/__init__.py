"""Formats of other systems. A further one is a module here and an entry in FOREIGN."""

from __future__ import annotations

from collections.abc import Mapping

from maat.workloads.formats.foreign.helios import HELIOS
from maat.workloads.formats.foreign.philly import PHILLY
from maat.workloads.formats.foreign.records import ForeignFormat
from maat.workloads.formats.foreign.sacct import SACCT

FOREIGN: Mapping[str, ForeignFormat] = {"sacct": SACCT, "philly": PHILLY, "helios": HELIOS}
"""Besides these, `csv` is any CSV by a mapping of its columns."""
