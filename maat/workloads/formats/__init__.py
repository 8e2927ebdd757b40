"""The formats of traces. A further one is a module here and an entry in FORMATS."""

from __future__ import annotations

from collections.abc import Mapping

from maat.workloads.formats.bsbf import BSBF
from maat.workloads.formats.cells import TraceFormat
from maat.workloads.formats.pal import PAL
from maat.workloads.formats.shockwave import GAVEL, SHOCKWAVE
from maat.workloads.formats.sia import SIA

FORMATS: Mapping[str, TraceFormat] = {
    "sia": SIA,
    "pal": PAL,
    "bsbf": BSBF,
    "shockwave": SHOCKWAVE,
    "gavel": GAVEL,
}
