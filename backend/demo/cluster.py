"""The demo cluster: 64 GPUs of three types, thirty times as fast as the clock."""

from __future__ import annotations

from maat.api.clusters import ClusterBody

DEMO_CLUSTER = ClusterBody(
    name="demo",
    shape="t4=6x4,rtx=3x8,a100=2x8",
    policy="sia",
    round_seconds=60.0,
    speed=30.0,
)
# What an hour of a GPU of each type costs, in about the ratio of what clouds ask for them.
PRICES, CURRENCY = {"t4": "0.35", "rtx": "0.60", "a100": "2.90"}, "USD"
