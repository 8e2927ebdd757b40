"""The table of the scores of GPUs on the page of the cluster."""

from __future__ import annotations

from frontend.pages.cluster.gpu_scores import gpu_scores_view
from maat.api.evidence import GpuScoreOut, ReportersOut


def score(index: int, ratio: float, *tenants: str, others: int = 0) -> GpuScoreOut:
    return GpuScoreOut(
        node="t4-0",
        gpu_index=index,
        gpu_type="t4",
        score=ratio,
        weight=0.5,
        attempts=3,
        reported_by=ReportersOut(tenants=list(tenants), other_tenants=others),
        updated_at="2026-11-20T10:00:00Z",
    )


def test_a_score_says_who_reported_it() -> None:
    shown = str(gpu_scores_view([score(3, 1.314, "vision", others=2), score(1, 1.0, others=1)]))
    for words in (
        "t4-0, GPU 3",
        "1.31",
        "0.50",
        "vision",
        " and 2 other tenants",
        "1 other tenant",
    ):
        assert words in shown


def test_of_many_gpus_those_that_differ_most_are_shown() -> None:
    scores = [score(index, 1.0 + index / 100) for index in range(30)] + [score(30, 0.5)]
    shown = str(gpu_scores_view(scores))
    assert "Of 31 GPUs the 20 that differ most" in shown
    assert "GPU 30'" in shown
    assert "GPU 29'" in shown
    assert "GPU 5'" not in shown
