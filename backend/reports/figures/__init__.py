"""The five figures of a report: each answers its question by a sentence worked out from numbers."""

from backend.reports.figures.busy import busy
from backend.reports.figures.buy import buy
from backend.reports.figures.cost import cost
from backend.reports.figures.fair import fair
from backend.reports.figures.waited import waited

__all__ = ["busy", "buy", "cost", "fair", "waited"]
