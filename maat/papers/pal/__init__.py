"""PAL (SC '24): placement that knows slow GPUs. Its evaluation items, in the paper's order."""

from __future__ import annotations

from maat.papers.items import Paper
from maat.papers.pal import example, measured, sia_philly, synergy, testbed

PAL = Paper(
    "pal",
    "PAL: A Variability-Aware Policy for Scheduling ML Workloads in GPU Clusters (SC 2024)",
    (
        *example.ITEMS,
        *measured.ITEMS,
        *testbed.ITEMS,
        *sia_philly.ITEMS,
        *synergy.ITEMS,
    ),
)
