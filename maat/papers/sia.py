"""Sia (SOSP '23): schedules goodput on GPUs of several types. Its evaluation items."""

from __future__ import annotations

from maat.papers.items import Paper

SIA = Paper(
    "sia", "Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling (SOSP 2023)", ()
)
