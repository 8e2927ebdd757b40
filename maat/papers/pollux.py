"""Pollux (OSDI '21): co-adapts GPUs and batch sizes. Its evaluation items."""

from __future__ import annotations

from maat.papers.items import Paper

POLLUX = Paper(
    "pollux",
    "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning (OSDI 2021)",
    (),
)
