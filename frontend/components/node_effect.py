"""What draining or removing a node means: which jobs move, which hold it up, what it costs."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import scrolls
from frontend.components.names import cut_name
from frontend.components.states import state_chip
from frontend.formatting import duration, gpus
from maat.api.clusters import MovedJobOut, NodeEffectOut

_SHOWN = 50


def node_effect(effect: NodeEffectOut, *, table_id: str) -> list[Component]:
    """The sentence of the service, and a table of the jobs. `table_id`: of the box that scrolls."""
    parts: list[Component] = [html.P(effect["sentence"])]
    if not effect["jobs"]:
        return parts
    if effect["held_up_by"]:
        words = "Those that cannot be moved hold it up until they end or are cancelled."
        parts.append(html.P(["⚠ ", words]))
    if effect["restart_gpu_seconds"]:
        lost = duration(effect["restart_gpu_seconds"])
        parts.append(html.P(f"The restarts cost about {lost} of one GPU's time together."))
    names = ("Job", "Tenant", "State", "GPUs here", "Holds", "What happens")
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    rows = [_row(job) for job in effect["jobs"][:_SHOWN]]
    table = html.Table([head, html.Tbody(rows)], className="plain-table")
    more = len(effect["jobs"]) - _SHOWN
    parts.append(scrolls(table_id, table, label="Jobs that hold its GPUs"))
    return parts if more <= 0 else [*parts, html.Div(f"and {more} more jobs", className="hint")]


def _row(job: MovedJobOut) -> html.Tr:
    moves = f"moves or waits; restart {duration(job['restart_seconds'])}"
    cells = [
        cut_name(job["job_name"]),
        "–" if job["tenant"] is None else cut_name(job["tenant"]),
        state_chip(job["state"]),
        str(job["gpus_here"]),
        gpus(job["gpu_count"], job["gpu_type"]),
        moves if job["may_move"] else "stays: may not be preempted",
    ]
    return html.Tr([html.Td(cell) for cell in cells])
