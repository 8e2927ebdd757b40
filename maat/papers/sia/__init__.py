"""Sia (SOSP '23): schedules goodput on GPUs of several types. Its items, in the paper's order."""

from __future__ import annotations

from maat.papers.items import Item, Paper
from maat.papers.sia import helios, jobs, policies, set_up, settings, speed

ORDER = (
    "fig-1",
    "fig-2",
    "table-1",
    "table-2",
    "table-3",
    "fig-4",
    "fig-5",
    "fig-6",
    "fig-7",
    "sec-5.3",
    "table-4",
    "fig-8",
    "sec-5.6",
    "fig-9",
    "fig-10-left",
    "fig-10-right",
    "fig-11",
    "sec-5.7-profiling",
    "sec-5.7-two-counts",
)
_ITEMS: dict[str, Item] = {
    item.key: item
    for item in (
        *set_up.ITEMS,
        *policies.ITEMS,
        *helios.ITEMS,
        *jobs.ITEMS,
        *speed.ITEMS,
        *settings.ITEMS,
    )
}

SIA = Paper(
    "sia",
    "Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling (SOSP 2023)",
    tuple(_ITEMS[key] for key in ORDER),
)
