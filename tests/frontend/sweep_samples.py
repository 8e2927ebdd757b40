"""A sweep as the API shows it: two settings, two seeds, and one combination that has not ended."""

from __future__ import annotations

from typing import Any


def axis(
    name: str,
    values: list[Any],
    *,
    title: str = "Fairness power p",
    unit: str | None = None,
    logarithmic: bool = False,
) -> Any:
    return {
        "name": name,
        "title": title,
        "unit": unit,
        "logarithmic": logarithmic,
        "values": values,
    }


def row(
    jct: float, spread: float = 0.5, *, seeds: tuple[int, ...] = (0, 1), **settings: Any
) -> Any:
    mean = {"avg_jct_hours": jct, "worst_rho": 1.5, "unfair_fraction": 0.25}
    return {
        "settings": settings,
        "seeds": list(seeds),
        "mean": mean,
        "spread": dict.fromkeys(mean, spread),
    }


def sweep(**fields: Any) -> Any:
    seconds = axis("round_seconds", [60, 300], title="Round duration", unit="s", logarithmic=True)
    rows = [
        row(1.0, p=-1, round_seconds=60),
        row(2.0, p=-1, round_seconds=300),
        row(1.5, p=0.5, round_seconds=60),
    ]
    request = {
        "trace": {"kind": "generated", "family": "philly", "jobs": None},
        "cluster": "t4=1x4",
        "policy": "sia",
        "fidelity": "paper",
    }
    shown = {
        "id": "swp_1",
        "name": "s",
        "operation_id": "op_1",
        "state": "running",
        "done": 6,
        "total": 8,
        "seeds": [0, 1],
        "fairness_rule": "mean-of-ratios",
    }
    return {
        **shown,
        "axes": [axis("p", [-1, 0.5]), seconds],
        "rows": rows,
        "points": [],
        "request": request,
        **fields,
    }
