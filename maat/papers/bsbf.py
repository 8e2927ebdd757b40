"""SJF-BSBF: two jobs share a GPU where that pays. Its evaluation items."""

from __future__ import annotations

from maat.papers.items import Paper

BSBF = Paper(
    "bsbf",
    "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing",
    (),
)
