"""The overview in words: what is wrong, who waits and why, what the last round changed."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import scrolls
from frontend.components.states import what_fell_back
from frontend.formatting import count, duration, gpus, plural
from frontend.others import is_other
from frontend.routing import path_to
from maat.api.clusters import ClusterChangesOut, ClusterOut, ClusterStateOut, HoldingChangeOut
from maat.api.job_answers import JobOut
from maat.api.rounds import RoundOut

WAITING = ("pending", "submitted", "profiling", "preempted")
MOST_WAITING, MOST_CHANGES, MOST_TROUBLES = 4, 5, 3


def troubles(
    cluster: ClusterOut, state: ClusterStateOut, rounds: Sequence[RoundOut]
) -> list[Component]:
    """Return what somebody has to look after, the worst first; each line leads to its place."""
    found: list[tuple[str, str]] = []
    there = path_to("/cluster", cluster=cluster["id"])
    if cluster["fault"]:
        found.append((f"Its engine does not answer: {cluster['fault']}", there))
    if cluster["paused"]:
        found.append(("The cluster is paused: no round is made.", there))
    if state["gpus"] and all(gpu["drained"] for gpu in state["gpus"]):
        found.append(("Every GPU is drained: no job can start.", there))
    found += [
        (
            f"Node {node} cannot be used: {fault}",
            path_to("/cluster", cluster=cluster["id"], node=node),
        )
        for node, fault in state["faults"].items()
    ]
    if rounds and rounds[0]["fallback"]:
        words = f"{what_fell_back(rounds[0])} in round {count(rounds[0]['number'])}."
        path = path_to(f"/rounds/{rounds[0]['number']}", cluster=cluster["id"])
        found.append((f"{words} {rounds[0]['message']}".strip(), path))
    lines: list[Component] = [
        html.Div(["⚠ ", _link(text, path)], className="trouble")
        for text, path in found[:MOST_TROUBLES]
    ]
    if len(found) > MOST_TROUBLES:
        lines.append(html.Div(f"and {len(found) - MOST_TROUBLES} more", className="caption"))
    return lines


def verdict(state: ClusterStateOut, *, running: int, waiting: int, failed: int) -> str:
    """Sum up the cluster in a sentence. The counts are of jobs that the visitor may see.

    Where others hold GPUs too, it tells those of the visitor apart.
    """
    cells = state["gpus"]
    if not cells:
        return "The cluster has no node yet."
    held, others = sum(cell["held"] for cell in cells), held_by_others(state)
    verb = "runs" if running == 1 else "run"
    of_all = f"of {count(len(cells))} GPUs"
    if others:
        run = f"{count(running)} of your team's jobs {verb}" if running else "None of yours runs"
        use = f"{run} on {count(held - others)} {of_all}; others hold {count(others)}"
        use = use if running else f"{run}; others hold {count(others)} {of_all}"
    else:
        use = f"{plural(running, 'job')} {verb} on {count(held)} {of_all}"
    nobody = "none of yours waits" if others else "nobody waits"
    wait = nobody if not waiting else f"{plural(waiting, 'job')} waiting for GPUs"
    lost = f"; {count(failed)} failed so far" if failed else ""
    return f"{use}, {wait}{lost}."


def held_by_others(state: ClusterStateOut) -> int:
    """Count the GPUs that only jobs hold which the visitor may not see."""
    return sum(
        is_other(cell["job_id"]) and all(is_other(one["job_id"]) for one in cell["shared_with"])
        for cell in state["gpus"]
        if cell["job_id"] is not None
    )


def waiting_table(jobs: Sequence[JobOut], *, waiting: int, cluster_id: str) -> Component:
    """Job x how long it has waited x why, those that have waited longest first."""
    if not jobs and not waiting:
        return html.Div("Nobody waits.", className="hint")
    if not jobs:
        verb = "waits" if waiting == 1 else "wait"
        words = f"{plural(waiting, 'job')} that had GPUs {verb} for GPUs again"
        path = path_to("/jobs", cluster=cluster_id, state=[*WAITING])
        return html.Div(
            ["Nobody waits for a first GPU. ", _link(words, path), "."], className="hint"
        )
    rows = [
        html.Tr(
            [
                html.Td(_link(job["name"], f"/jobs/{job['id']}")),
                html.Td(duration(job["wait_seconds"]), className="number"),
                html.Td(job["reason"]["sentence"], className="wraps"),
            ]
        )
        for job in jobs[:MOST_WAITING]
    ]
    heads = html.Tr([html.Th("Job"), html.Th("Waits", className="number"), html.Th("Why")])
    table = html.Table([html.Thead(heads), html.Tbody(rows)], className="plain-table")
    shown: list[Component] = [scrolls("overview-waiting-box", table, label="Who waits, and why")]
    if waiting > len(rows):
        every = path_to("/jobs", cluster=cluster_id, state=[*WAITING])
        shown.append(_link(f"All {count(waiting)} that wait", every))
    return html.Div(shown)


def changes_list(
    changed: ClusterChangesOut | None, *, number: int | None, cluster_id: str
) -> Component:
    """Say job by job what the last round, of this number, changed.

    `changed`: None if the round before it is not known.
    """
    if number is None or changed is None or changed["since_round"] is None:
        return html.Div("The second round shows here what it changed.", className="hint")
    lines = change_lines(changed["changes"])
    if not lines:
        return html.Div("It changed nothing: every job kept its GPUs.", className="hint")
    shown: list[Component] = []
    for job, name, words in lines[:MOST_CHANGES]:
        shown.append(html.Li([_link(name, f"/jobs/{job}"), f" {words}"]))
    if len(lines) > MOST_CHANGES:
        more = f"and {count(len(lines) - MOST_CHANGES)} more"
        shown.append(html.Li(_link(more, path_to(f"/rounds/{number}", cluster=cluster_id))))
    return html.Ul(shown, className="changes")


def change_lines(changes: Sequence[HoldingChangeOut]) -> list[tuple[str, str, str]]:
    """Return (job id, name, what happened to it): losses first, then what moved, grew and began.

    Jobs of other tenants, which have no page here, are left out.
    """
    own = [change for change in changes if not is_other(change["job_id"])]
    told = sorted(own, key=lambda change: (change["after"] is not None, change["before"] is None))
    return [(change["job_id"], change["job_name"], _happened(change)) for change in told]


def _happened(change: HoldingChangeOut) -> str:
    was, now = change["before"], change["after"]
    if now is None:
        return "holds no GPU any more"
    is_to = gpus(now["gpu_count"], now["gpu_type"])
    if was is None:
        return f"got {is_to}"
    if was["gpu_type"] != now["gpu_type"]:
        return f"moved from {gpus(was['gpu_count'], was['gpu_type'])} to {is_to}"
    verb = "grew" if now["gpu_count"] > was["gpu_count"] else "shrank"
    return f"{verb} from {was['gpu_count']} to {is_to}"


def _link(words: str, path: str) -> dcc.Link:
    return dcc.Link(words, href=path)
