"""Pollux (OSDI '21): co-adapts GPUs and batch sizes. Its evaluation items, in its order."""

from __future__ import annotations

from maat.papers.items import Item, Paper
from maat.papers.pollux import models

ORDER = ("fig-1", "fig-2", "fig-3", "table-1")
_ITEMS: dict[str, Item] = {item.key: item for item in models.ITEMS}

POLLUX = Paper(
    "pollux",
    "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning (OSDI 2021)",
    tuple(_ITEMS[key] for key in ORDER),
)
