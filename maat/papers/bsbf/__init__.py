"""SJF-BSBF: two jobs share a GPU where that pays. Its items, in the paper's order."""

from __future__ import annotations

from maat.papers.bsbf import cluster, interference, pair, profiles, simulated
from maat.papers.items import Item, Paper

ORDER = ("fig-1", "fig-2", "fig-3", "table-2", "fig-5", "table-3", "fig-6a", "fig-6b")
_ITEMS: dict[str, Item] = {
    item.key: item
    for item in (
        *pair.ITEMS,
        *profiles.ITEMS,
        *cluster.ITEMS,
        *simulated.ITEMS,
        *interference.ITEMS,
    )
}

BSBF = Paper(
    "bsbf",
    "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing",
    tuple(_ITEMS[key] for key in ORDER),
)
