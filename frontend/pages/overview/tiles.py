"""The tiles of the overview: one figure each, and where it leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dash.development.base_component import Component

from frontend.api import Failure
from frontend.components.cards import failed_tile, tile
from frontend.formatting import ABSENT, count, duration, percent, plural
from frontend.loading import Loaded
from frontend.pages.overview.summary import WAITING, held_by_others
from frontend.routing import path_to
from maat.api.clusters import ClusterStateOut
from maat.api.fields import Page
from maat.api.job_answers import JobPage
from maat.api.rounds import RoundOut

RUNNING = ("running", "starting", "restarting")


@dataclass(frozen=True, slots=True)
class Look:
    """What the tiles sum up.

    `jobs`: a page with the counts by state. `waiting`: the jobs that have waited longest for their
    first GPU. `rounds`: the latest few, newest first.
    """

    cluster_id: str
    state: Loaded[ClusterStateOut]
    jobs: Loaded[JobPage]
    waiting: Loaded[JobPage]
    rounds: Loaded[Page[RoundOut]]

    def counted(self, states: Sequence[str]) -> int:
        counts = self.jobs()["state_counts"]
        return sum(counts.get(name, 0) for name in states)

    def jobs_in(self, *states: str) -> str:
        """Return the address of the job list with the jobs in these states."""
        return path_to("/jobs", cluster=self.cluster_id, state=states)


def tiles_of(look: Look) -> list[Component]:
    return [_drawn(label, draw, look) for label, draw in TILES.items()]


def _drawn(label: str, draw: Callable[[str, Look], Component], look: Look) -> Component:
    try:
        return draw(label, look)
    except Failure as error:
        return failed_tile(label, error)


def _gpus_tile(label: str, look: Look) -> Component:
    cells = look.state()["gpus"]
    held = sum(cell["held"] for cell in cells)
    drained = sum(cell["drained"] for cell in cells)
    note = "no node"
    if cells:
        others = held_by_others(look.state())
        note = percent(held / len(cells)) + (f", {drained} drained" if drained else "")
        note += f", {count(others)} by others" if others else ""
    return tile(label, f"{count(held)} / {count(len(cells))}", note)


def _running_tile(label: str, look: Look) -> Component:
    restarting = look.counted(["restarting"])
    return tile(
        label,
        count(look.counted(RUNNING)),
        f"{restarting} of them restarting" if restarting else _whose(look, "jobs"),
        href=look.jobs_in(*RUNNING),
    )


def _whose(look: Look, words: str) -> str:
    """Say that only the visitor's jobs are counted, where others hold GPUs too."""
    return f"{words} (your team's)" if held_by_others(look.state()) else words


def _pending_tile(label: str, look: Look) -> Component:
    pending = look.counted(WAITING)
    note = "jobs wait for GPUs" if pending else _whose(look, "no job waits")
    return tile(label, count(pending), note, href=look.jobs_in(*WAITING))


def _wait_tile(label: str, look: Look) -> Component:
    if jobs := look.waiting()["items"]:
        oldest = jobs[0]
        return tile(
            label,
            duration(oldest["wait_seconds"]),
            oldest["name"],
            href=f"/jobs/{oldest['id']}",
        )
    had_gpus = "all who wait had GPUs before"
    note = had_gpus if look.counted(WAITING) else "nothing waits to start"
    return tile(label, ABSENT, note)


def _succeeded_tile(label: str, look: Look) -> Component:
    failed = plural(look.counted(["failed"]), "failed", "failed")
    finished = count(look.counted(["succeeded"]))
    return tile(label, finished, failed, href=look.jobs_in("succeeded"))


def _round_tile(label: str, look: Look) -> Component:
    """The round of the state that the page shows: a newer one may have come meanwhile."""
    shown = look.state()["round_number"]
    rounds = look.rounds()["items"]
    latest = next((entry for entry in rounds if entry["number"] == shown), None)
    number, note = ABSENT, "none yet"
    if latest:
        milliseconds = (latest["policy_seconds"] + latest["place_seconds"]) * 1000
        number = count(latest["number"])
        note = f"{latest['policy']}, decided in {milliseconds:.0f} ms"
    return tile(label, number, note, href=path_to("/rounds", cluster=look.cluster_id))


TILES = {
    "GPUs in use": _gpus_tile,
    "Running": _running_tile,
    "Pending": _pending_tile,
    "Oldest wait": _wait_tile,
    "Succeeded": _succeeded_tile,
    "Round": _round_tile,
}
