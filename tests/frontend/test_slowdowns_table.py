"""The table of measured slowdowns on the page of the cluster."""

from __future__ import annotations

from frontend.pages.cluster.slowdowns import slowdowns_view
from maat.api.clusters import SlowdownOut

PAIR = SlowdownOut(
    victim="bert",
    victim_batch=16,
    partner="ncf",
    partner_batch=512,
    gpu_type="t4",
    gpu_count=2,
    slowdown=1.394,
    spread=0.051,
    reports=1200,
    is_used=True,
    updated_at="2026-11-20T10:00:00Z",
)


def test_a_pair_says_who_is_slowed_by_whom_and_how_sure_that_is() -> None:
    shown = str(slowdowns_view([PAIR, PAIR | {"is_used": False}]))
    for words in ("bert, 16 a GPU", "ncf, 512 a GPU", "1.39", "± 0.05", "decisions go by it"):
        assert words in shown
    assert shown.count("too few reports yet") == 1


def test_without_a_pair_the_table_says_by_what_rounds_go() -> None:
    assert "what the cluster declares" in str(slowdowns_view([]))
