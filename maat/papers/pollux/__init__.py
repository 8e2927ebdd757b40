"""Pollux (OSDI '21): co-adapts GPUs and batch sizes. Its evaluation items, in its order."""

from __future__ import annotations

from maat.papers.items import Item, Paper
from maat.papers.pollux import applications, models, schedulers, settings

ORDER = (
    "fig-1",
    "fig-2",
    "fig-3",
    "table-1",
    "table-2",
    "fig-5",
    "fig-6",
    "fig-7",
    "fig-8a",
    "sec-5.3.2",
    "fig-8b",
    "fig-8c",
    "fig-9",
    "table-3",
)
_ITEMS: dict[str, Item] = {
    item.key: item
    for item in (*models.ITEMS, *schedulers.ITEMS, *settings.ITEMS, *applications.ITEMS)
}

POLLUX = Paper(
    "pollux",
    "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning (OSDI 2021)",
    tuple(_ITEMS[key] for key in ORDER),
)
