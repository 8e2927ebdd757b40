"""All policies on one trace, and what it costs to move jobs less often: Maat's own study."""

from __future__ import annotations

from maat.papers.comparison import moves, policies
from maat.papers.items import Paper

COMPARISON = Paper("comparison", "All policies on one trace", (*policies.ITEMS, *moves.ITEMS))
