"""How a demo cluster with jobs of its own begins: its calendar, its clock, prices and history."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from backend.clocktime import shown_day
from backend.clusters.models import Cluster
from backend.demo.cluster import CURRENCY, PRICES
from backend.demo.history import History, calendar_of, store_history
from backend.usage.prices import add_price
from maat.api.usage import PriceBody

# It runs for hours and days: a round every six seconds costs a machine little.
ROUND_SECONDS, SPEED = 120.0, 20.0


def begin_with_history(session: Session, demo: Cluster, history: History) -> None:
    """Begin a cluster that was just made with whole weeks of history, up to its last midnight.

    The worker plays the rest, up to the moment at which the cluster was made.
    """
    calendar = calendar_of(demo.created_at, history.beginnings)
    begin_on(session, demo, calendar.epoch)
    store_history(session, demo, history, calendar.begins)


def begin_on(session: Session, demo: Cluster, epoch: datetime) -> None:
    """Set the calendar and the clock, and price every GPU type from the first day on."""
    demo.epoch = epoch
    demo.round_seconds, demo.speed = ROUND_SECONDS, SPEED
    session.add(demo)
    for gpu_type, price in PRICES.items():
        body = {
            "gpu_type": gpu_type,
            "price_per_gpu_hour": price,
            "currency": CURRENCY,
            "valid_from": shown_day(demo, 0.0).isoformat(),
        }
        add_price(session, demo.id, PriceBody.model_validate(body))
