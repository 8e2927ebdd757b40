"""What it costs to make items of a paper, in words."""

from __future__ import annotations

from collections.abc import Sequence

from maat.papers.bench import Size
from maat.papers.items import Item


def cost_of(items: Sequence[Item], size: Size) -> str:
    """Say what the simulations of these items cost: `about 16 CPU minutes, 1 item not measured`.

    Items that share runs were measured each alone, so that together they cost less.
    """
    each = [item.cpu_minutes[size is not Size.QUICK] for item in items]
    known = [minutes for minutes in each if minutes is not None]
    unknown = len(each) - len(known)
    if not known:
        return "an unknown number of CPU minutes (nobody has measured it)"
    total = sum(known)
    about = "less than a CPU minute" if total < 1 else f"about {total:.2g} CPU minutes"
    if not unknown:
        return about
    return f"{about}, {unknown} item{'' if unknown == 1 else 's'} not measured"
