"""The table of measured slowdowns on the page of the cluster."""

from __future__ import annotations

from frontend.pages.cluster.slowdowns import slowdowns_view
from maat.api.evidence import ReportersOut, SlowdownOut

PAIR = SlowdownOut(
    victim="bert",
    victim_tenant="vision",
    victim_batch=16,
    partner="ncf",
    partner_tenant=None,
    partner_batch=512,
    gpu_type="t4",
    gpu_count=2,
    slowdown=1.394,
    spread=0.051,
    weight=1.0,
    jobs=7,
    reports=1200,
    is_used=True,
    reported_by=ReportersOut(tenants=["vision"], other_tenants=1),
    updated_at="2026-11-20T10:00:00Z",
)


def test_a_pair_says_who_is_slowed_by_whom_and_how_sure_that_is() -> None:
    shown = str(slowdowns_view([PAIR, PAIR | {"is_used": False}]))
    shown = shown.replace("\\u2068", "").replace("\\u2069", "")
    for words in (
        "vision/bert, 16 a GPU",
        "ncf, 512 a GPU",
        "1.39",
        "± 0.05",
        "decisions go by it",
        "vision and 1 other tenant",
    ):
        assert words in shown
    assert "vision and 1 other tenant" in shown
    assert shown.count("too few reports yet") == 1


def test_without_a_pair_the_table_says_by_what_rounds_go() -> None:
    assert "what the cluster declares" in str(slowdowns_view([]))
