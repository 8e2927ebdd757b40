"""A cluster as a picture for the terminal, of at most so many lines. Reads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from maat.api.job_words import state_in_words
from maat.api.shown_numbers import ABSENT, duration, percent
from maat.cli.live.cluster_view import ClusterView, Holder
from maat.cli.terminal_text import in_one_line

if TYPE_CHECKING:
    from maat.api.job_answers import JobOut

_BAR = 20  # characters
_MOST_NAME = 32
_MOST_NODES = 3
_HEADS = 10  # lines of headings and gaps
_LEAST_ROWS = 3


def picture_of(
    view: ClusterView, now: float, *, away: str | None = None, lines: int | None = None
) -> RenderableType:
    """Draw a cluster. `now`: of the monotonic clock. `lines`: as many as there are; None: all."""
    types = sorted(view.state["capacity_by_type"])
    heads = _HEADS + len(types) + (away is not None) + (view.cluster["fault"] is not None)
    rows = None if lines is None else max(lines - heads, 2 * _LEAST_ROWS)
    waiting, holders = _shares(len(view.waiting), len(view.holders), rows)
    parts: list[RenderableType] = [_head(view, now)]
    parts += [] if away is None else [Text(in_one_line(away), style="bold red", no_wrap=True)]
    parts.append(_gpus(view, types))
    parts += _titled("Running", _running(view.holders[:holders]), len(view.holders) - holders)
    left = len(view.waiting) - waiting + view.more_waiting
    parts += _titled("Waiting", _queue(view.waiting[:waiting]), left)
    return Group(*parts)


def _head(view: ClusterView, now: float) -> Text:
    cluster, number = view.cluster, view.state["round_number"]
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(_name(cluster["name"]), style="bold")
    head.append(f"  {cluster['policy']} + {cluster['placer']}")
    head.append(f"  round {ABSENT if number is None else number}, {_next(view, now)}")
    head.append(f"  {len(view.holders)} running")
    head.append(f", {len(view.waiting) + view.more_waiting} waiting")
    head.append(f"  {view.state['now'][:19].replace('T', ' ')}", style="dim")
    if cluster["fault"] is not None:
        head.append(f"\n{in_one_line(cluster['fault'])}", style="red")
    return head


def _next(view: ClusterView, now: float) -> str:
    if view.cluster["paused"]:
        return "paused: no rounds"
    left = view.next_round_seconds(now)
    if left is None:
        return "the first round is due"
    return f"the next in {duration(left)}" if left > 0 else "the next is due"


def _gpus(view: ClusterView, types: Sequence[str]) -> Table:
    """One line per GPU type: how many of them jobs hold."""
    # Where nothing is reserved the terminal is not made wider.
    columns = ["held", "of", "free", *(["reserved"] if view.reserved else []), "out of service"]
    table = _columns("GPU type", "", *columns)
    for gpu_type in types:
        capacity = view.state["capacity_by_type"].get(gpu_type, 0)
        used = view.state["used_by_type"].get(gpu_type, 0)
        free = view.state["free_by_type"].get(gpu_type, 0)
        filled = round(_BAR * used / capacity) if capacity else 0
        out = sum(gpu["drained"] for gpu in view.state["gpus"] if gpu["gpu_type"] == gpu_type)
        bar = Text("█" * filled + "░" * (_BAR - filled))
        reserved = [view.reserved.get(gpu_type, 0)] if view.reserved else []
        figures = (used, capacity, free, *reserved, out or "")
        table.add_row(Text(_name(gpu_type)), bar, *map(str, figures))
    return table


def _running(holders: Sequence[Holder]) -> Table:
    table = _columns("job", "tenant", "state", "GPUs", "nodes", "done", "left")
    for one in holders:
        held = ", ".join(f"{count} {gpu_type}" for gpu_type, count in one.gpu_types.items())
        job = one.job
        done = ("", "", "") if job is None else (state_in_words(job), _done(job), _left(job))
        cells = (one.name, one.tenant or "", done[0], held, _nodes(one.nodes), *done[1:])
        table.add_row(*(Text(_name(cell)) for cell in cells))
    return table


def _queue(jobs: Sequence[JobOut]) -> Table:
    table = _columns("job", "tenant", "state", "waits", "why")
    table.columns[-1].no_wrap = False  # the one column that gives way, and no name
    for job in jobs:
        cells = (job["name"], job["tenant"], state_in_words(job), duration(job["wait_seconds"]))
        why = Text(in_one_line(job["reason"]["sentence"]), no_wrap=True, overflow="ellipsis")
        table.add_row(*(Text(_name(cell)) for cell in cells), why)
    return table


def _columns(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in names:
        is_figure = name in {"held", "of", "free", "reserved", "out of service", "done"}
        table.add_column(name, justify="right" if is_figure else "left", no_wrap=True)
    return table


def _titled(title: str, table: Table, left: int) -> list[RenderableType]:
    if not table.row_count and not left:
        return [Text(), Text(f"{title}: none", style="bold")]
    more = [] if left <= 0 else [Text(f"and {left} more", style="dim")]
    return [Text(), Text(title, style="bold"), table, *more]


def _shares(waiting: int, holding: int, rows: int | None) -> tuple[int, int]:
    """Share the rows: each gets what it needs, or half and what the other leaves."""
    if rows is None:
        return waiting, holding
    half = rows // 2
    shown = min(waiting, max(half, rows - holding))
    return shown, min(holding, rows - shown)


def _nodes(nodes: dict[str, int]) -> str:
    shown = [f"{node} ×{count}" for node, count in list(nodes.items())[:_MOST_NODES]]
    more = len(nodes) - _MOST_NODES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _done(job: JobOut) -> str:
    unknown = job["runs_command"] and job["progress"] == 0
    return ABSENT if unknown else percent(job["progress"])


def _left(job: JobOut) -> str:
    return duration(job["remaining_seconds"])


def _name(text: str) -> str:
    """Return a name in one line that does not push other columns away."""
    shown = in_one_line(text)
    return shown if len(shown) <= _MOST_NAME else f"{shown[: _MOST_NAME - 1]}…"
