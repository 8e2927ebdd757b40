"""The overview in words: what is wrong, who waits and why, what the last round changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import scrolls
from frontend.formatting import count, duration, gpus, plural
from frontend.others import is_other
from frontend.routing import path_to
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.api.job_answers import JobOut
from maat.api.rounds import RoundOut

WAITING = ("pending", "submitted", "profiling", "preempted")
MOST_WAITING, MOST_CHANGES, MOST_TROUBLES = 4, 5, 3


@dataclass(frozen=True, slots=True)
class Held:
    """What a job holds of one GPU type; of several, the one of most GPUs."""

    name: str
    gpu_type: str
    gpu_count: int


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
        words = f"The solver fell back in round {count(rounds[0]['number'])}."
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
    """Sum up the cluster in a sentence."""
    cells = state["gpus"]
    if not cells:
        return "The cluster has no node yet."
    held = sum(cell["held"] for cell in cells)
    run = f"{plural(running, 'job')} {'runs' if running == 1 else 'run'}"
    use = f"{run} on {count(held)} of {count(len(cells))} GPUs"
    wait = "nobody waits" if not waiting else f"{plural(waiting, 'job')} waiting for GPUs"
    lost = f"; {count(failed)} failed so far" if failed else ""
    return f"{use}, {wait}{lost}."


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
    before: ClusterStateOut | None, after: ClusterStateOut, *, cluster_id: str
) -> Component:
    """Say job by job what the last round changed. `before`: as the round before left it."""
    number = after["round_number"]
    if before is None or number is None:
        return html.Div("The second round shows here what it changed.", className="hint")
    lines = change_lines(held_by(before), held_by(after))
    if not lines:
        return html.Div("It changed nothing: every job kept its GPUs.", className="hint")
    shown: list[Component] = []
    for job, name, words in lines[:MOST_CHANGES]:
        shown.append(html.Li([_link(name, f"/jobs/{job}"), f" {words}"]))
    if len(lines) > MOST_CHANGES:
        more = f"and {count(len(lines) - MOST_CHANGES)} more"
        shown.append(html.Li(_link(more, path_to(f"/rounds/{number}", cluster=cluster_id))))
    return html.Ul(shown, className="changes")


def held_by(state: ClusterStateOut) -> dict[str, Held]:
    """Return what each job holds; jobs of other tenants, whose keys do not last, are left out."""
    counted: dict[str, dict[str, int]] = {}
    names: dict[str, str] = {}
    for cell in state["gpus"]:
        job = cell["job_id"]
        if job is None or is_other(job):
            continue
        names[job] = str(cell["job_name"] or job)
        of_job = counted.setdefault(job, {})
        of_job[cell["gpu_type"]] = of_job.get(cell["gpu_type"], 0) + 1
    largest = {job: max(of_job, key=lambda name: of_job[name]) for job, of_job in counted.items()}
    return {job: Held(names[job], kind, counted[job][kind]) for job, kind in largest.items()}


def change_lines(
    before: Mapping[str, Held], after: Mapping[str, Held]
) -> list[tuple[str, str, str]]:
    """Return (job id, name, what happened to it): losses first, then what moved, grew and began."""
    lost = [
        (job, held.name, "holds no GPU any more")
        for job, held in before.items()
        if job not in after
    ]
    return [*lost, *_moved(before, after), *_begun(before, after)]


def _moved(before: Mapping[str, Held], after: Mapping[str, Held]) -> Iterable[tuple[str, str, str]]:
    for job, now in after.items():
        was = before.get(job)
        if was is None or was == now:
            continue
        is_to = gpus(now.gpu_count, now.gpu_type)
        if was.gpu_type != now.gpu_type:
            yield job, now.name, f"moved from {gpus(was.gpu_count, was.gpu_type)} to {is_to}"
        else:
            verb = "grew" if now.gpu_count > was.gpu_count else "shrank"
            yield job, now.name, f"{verb} from {was.gpu_count} to {is_to}"


def _begun(before: Mapping[str, Held], after: Mapping[str, Held]) -> Iterable[tuple[str, str, str]]:
    for job, now in after.items():
        if job not in before:
            yield job, now.name, f"got {gpus(now.gpu_count, now.gpu_type)}"


def _link(words: str, path: str) -> dcc.Link:
    return dcc.Link(words, href=path)
