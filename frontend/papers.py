"""Words for the papers, their tables and figures, and how ours compare with the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, inf, isfinite, isinf

from frontend.formatting import ABSENT, number, percent, plural
from frontend.routing import path_to
from maat.api.measurements import UsedOut
from maat.api.papers import PaperItemOut, ReproducedRowOut

PAPER_NAMES = {"sia": "Sia", "pollux": "Pollux", "bsbf": "SJF-BSBF", "pal": "PAL"}
QUICK, WHOLE = "quick", "whole"
NEAR = 0.1
"""Share by which a value may differ from the published one and still count as near."""
_KINDS = {"fig": "Figure", "table": "Table", "sec": "Section"}


def paper_name(name: str) -> str:
    """Return what a paper is called: by the policy that it presents."""
    return PAPER_NAMES.get(name, name)


def item_name(key: str) -> str:
    """`fig-8` is Figure 8."""
    kind, _, rest = key.partition("-")
    return f"{_KINDS.get(kind, kind.capitalize())} {rest}".strip()


def item_names(item: PaperItemOut) -> str:
    """`Figure 6, Figure 7` of an item that is several figures of the paper."""
    return ", ".join(map(item_name, (item["key"], *item["also"])))


def item_address(paper: str, key: str, reproduction: str | None = None, **own: str) -> str:
    """Return the page of an item, as one reproduction made it if that is given.

    `own`: the uploads by kind that it offers to make it of.
    """
    return path_to(f"/papers/{paper}/{key}", reproduction=reproduction, **own)


def size_of(*, quick: bool) -> str:
    return QUICK if quick else WHOLE


def minutes(value: float | None) -> str:
    """CPU minutes of an item, for a column."""
    if value is None:
        return ABSENT
    return "< 0.1" if value < 0.05 else number(value, 2)


def cost_of(items: Sequence[PaperItemOut], size: str) -> str:
    """Say what it costs to make these items: `about 16 CPU minutes`."""
    each = [item["quick_cpu_minutes" if size == QUICK else "whole_cpu_minutes"] for item in items]
    known = [value for value in each if value is not None]
    unknown = len(each) - len(known)
    if not known:
        return "an unknown number of CPU minutes (nobody has measured it)"
    total = sum(known)
    about = "less than a CPU minute" if total < 1 else f"about {number(total, 2)} CPU minutes"
    return f"{about}, {plural(unknown, 'item')} not measured" if unknown else about


def runs_of(items: Sequence[PaperItemOut]) -> int:
    """Return how many runs these items have together, whole."""
    return sum(item["whole_runs"] or 0 for item in items)


def whole_words(items: Sequence[PaperItemOut], most: int) -> str:
    """`whole: 27 runs`; of too many also why there is none: `…, above the limit of 100`."""
    runs = runs_of(items)
    words = f"whole: {plural(runs, 'run')}"
    return words if runs <= most else f"{words}, above the limit of {number(most)}"


def own_words(measurements: Sequence[UsedOut]) -> str:
    """`of lab-2026`; empty where all is of published data."""
    names = [
        each["name"] if each["gpu_type"] is None else f"{each['name']}#{each['gpu_type']}"
        for each in measurements
    ]
    return f"of {' and '.join(names)}" if names else ""


def possible(items: Sequence[PaperItemOut]) -> list[PaperItemOut]:
    """Return the items that can be made now."""
    return [item for item in items if item["because"] is None]


def signed_percent(share: float | None) -> str:
    """`+3 %`."""
    if share is None or not isfinite(share):
        return ABSENT
    words = percent(abs(share))
    return words if words == "0 %" else f"{'+' if share > 0 else '−'}{words}"


def share_off(row: ReproducedRowOut) -> float | None:
    """Return by which share ours is off what was published; None if there is nothing to compare.

    Of a published 0 there are no shares: ours is 0 too, or infinitely far off.
    """
    ours, share = row["ours"], row["difference"]
    if share is not None or row["published"] is None or ours is None:
        return share
    return 0.0 if ours == 0 else copysign(inf, ours)


def difference_words(row: ReproducedRowOut) -> str:
    """`+3 %`; of a published 0 that is missed: `not 0`."""
    share = share_off(row)
    return "not 0" if share is not None and isinf(share) else signed_percent(share)


def agreement(rows: Sequence[ReproducedRowOut]) -> str:
    """Say how many published values are met, and which is missed by most; empty: there is none."""
    off = [(share, row) for row in rows if (share := share_off(row)) is not None]
    if not off:
        return ""
    near = sum(abs(difference) <= NEAR for difference, _ in off)
    most, row = max(off, key=lambda each: abs(each[0]))
    if len(off) == 1:
        if isinf(most):
            return "The one published value is missed: it is 0, ours is not."
        met = "is met within 10 %" if near else "is missed"
        return f"The one published value {met}: ours is off by {signed_percent(most)}."
    if near == len(off):
        return f"All {len(off)} published values are met within 10 %."
    furthest = ", ".join([*row["of"], row["measure"]])
    return (
        f"{near} of {len(off)} published values are met within 10 %. "
        f"Furthest: {furthest}, {difference_words(row)}."
    )
