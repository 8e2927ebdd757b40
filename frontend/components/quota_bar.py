"""A quota as a picture: what is in use, guaranteed and the ceiling, of all GPUs of a type."""

from __future__ import annotations

from typing import Any

from dash import html

from frontend.attributes import aria
from maat.api.quotas import QuotaOut
from maat.colours import gpu_colour

LEGEND = (
    "The bar is what the tenant holds, the shade what it is guaranteed, the line its ceiling; the "
    "whole width is all GPUs of the type."
)


def quota_bar(quota: QuotaOut, *, gpus: int) -> html.Div:
    """Draw a bullet bar. `gpus`: all GPUs of the type."""
    scale = max(gpus, quota["in_use"], quota["ceiling"] or 0, 1)
    colour = gpu_colour(quota["gpu_type"])

    def part(name: str, count: int, **style: Any) -> html.Span:
        width = f"{100 * count / scale:.2f}%"
        return html.Span(className=f"bullet-{name}", style={"width": width, **style})

    parts = [
        part("guaranteed", quota["guaranteed"], backgroundColor=colour),
        part("use", quota["in_use"], backgroundColor=colour),
    ]
    if quota["ceiling"] is not None:
        parts.append(part("ceiling", quota["ceiling"]))
    return html.Div(parts, className="bullet", role="img", **aria(quota_words(quota, gpus=gpus)))


def quota_words(quota: QuotaOut, *, gpus: int) -> str:
    """`12 of 16 a100, 8 guaranteed`; without a ceiling, of all there are."""
    most = gpus if quota["ceiling"] is None else quota["ceiling"]
    given = f", {quota['guaranteed']} guaranteed" if quota["guaranteed"] else ""
    return f"{quota['in_use']} of {most} {quota['gpu_type']}{given}"
