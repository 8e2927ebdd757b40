"""Jobs as rows of the list: its columns, and what stands in them."""

from __future__ import annotations

from typing import TypeAlias

from frontend.components.forecast import expected, expected_exact
from frontend.components.grid import RIGHT, Column
from frontend.components.states import STATES
from frontend.formatting import ABSENT, clock, duration, gpu_hours, gpus
from maat.api.job_answers import JobOut
from maat.api.job_words import FOLLOWS, follows_others
from maat.colours import gpu_colour

Row: TypeAlias = dict[str, str | float | None]

NEWEST_FIRST = "-submitted_at"
# Columns have the service's names of what it sorts by: `sort` of the address and of the list.
SORTS = frozenset({"submitted_at", "name", "model", "state", "progress", "gpu_hours", "restarts"})

IN_CLUSTER_TIME = {"headerTooltip": "In the cluster's own time"}
# On a phone name and state alone stand there without scrolling (assets/grid.js, fitColumns).
# The name takes the room that the texts of the others leave (assets/grid.js, giveRoom). It is cut
# in its middle, because names that begin alike differ at their ends.
COLUMNS: list[Column] = [
    {
        "field": "name",
        "colId": "name",
        "headerName": "Job",
        "flex": 4,
        "minWidth": 140,
        "sortable": True,
        "cellRenderer": "MaatLink",
        "cellRendererParams": {"cutInMiddle": True},
        "tooltipField": "name",
    },
    {
        "field": "state",
        "colId": "state",
        "headerName": "State",
        "width": 124,
        "sortable": True,
        "cellRenderer": "MaatState",
        "tooltipField": "reason",
    },
    {
        "field": "model",
        "colId": "model",
        "headerName": "Model",
        "flex": 1,
        "minWidth": 70,
        "maxWidth": 150,
        "sortable": True,
        "tooltipField": "model",
    },
    {
        "field": "want",
        "headerName": "Wants",
        "headerTooltip": "GPUs that it asks for",
        "width": 80,
        "tooltipField": "want",
    },
    {
        "field": "have",
        "headerName": "Has",
        "headerTooltip": "GPUs that it holds",
        "width": 104,
        "cellRenderer": "MaatGpus",
    },
    {
        "field": "progress_share",
        "colId": "progress",
        "headerName": "Progress",
        "width": 92,
        "tooltipField": "remaining_words",
        "sortable": True,
        "cellRenderer": "MaatProgress",
    },
    {
        "field": "expected",
        "headerName": "Expected",
        "headerTooltip": "P50 to P90 of its forecast, in the cluster's own time; (first): from too "
        "few draws for a P90 so far",
        "width": 138,
        "tooltipField": "expected_exact",
    },
    {
        "field": "wait",
        "headerName": "Waited",
        "width": 86,
        "tooltipField": "wait_exact",
        **IN_CLUSTER_TIME,
        **RIGHT,
    },
    {
        "field": "gpu_hours",
        "colId": "gpu_hours",
        "headerName": "GPU-hours",
        "width": 80,
        "sortable": True,
        **RIGHT,
    },
    {
        "field": "submitted",
        "colId": "submitted_at",
        "headerName": "Submitted",
        "width": 106,
        "tooltipField": "submitted_exact",
        "sortable": True,
        **IN_CLUSTER_TIME,
        **RIGHT,
    },
    {
        "field": "tenant",
        "headerName": "Tenant",
        "flex": 1,
        "minWidth": 70,
        "maxWidth": 130,
        "tooltipField": "tenant",
    },
    {
        "field": "restarts",
        "colId": "restarts",
        "headerName": "Restarts",
        "width": 74,
        "sortable": True,
        **RIGHT,
    },
]


def column_id(column: Column) -> str:
    """Return the name of a column, as the grid and the address have it."""
    return str(column.get("colId", column["field"]))


def columns_sorted(wish: str | None) -> list[Column]:
    """Return the columns, sorted by the one that `wish` names, or else the newest job first."""
    given = wish if wish is not None and wish.removeprefix("-") in SORTS else NEWEST_FIRST
    order = "desc" if given.startswith("-") else "asc"
    return [
        {**column, "sort": order} if column.get("colId") == given.removeprefix("-") else column
        for column in COLUMNS
    ]


def row_of(job: JobOut) -> Row:
    """A job as a row: words for people, hidden fields for links and colours."""
    look = STATES.get(job["state"])
    held = job["allocation"]
    return {
        "id": job["id"],
        "href": f"/jobs/{job['id']}",
        "name": job["name"],
        "state": FOLLOWS if follows_others(job) else job["state"],
        "glyph": look.glyph if look else "?",
        "hue": look.hue if look else "gray",
        "reason": (job["reason"] or {}).get("sentence"),
        "model": job["model"],
        "tenant": job["tenant"],
        "want": wanted(job),
        "have": gpus(held["gpu_count"], held["gpu_type"]) if held else ABSENT,
        "colour": gpu_colour(held["gpu_type"]) if held else None,
        "progress_share": None if is_unmeasured(job) else job["progress"],
        "expected": expected(job["forecast"]),
        "expected_exact": expected_exact(job["forecast"]),
        "remaining_words": f"{duration(job['remaining_seconds'])} left, as fast as it is now"
        if held
        else None,
        "wait": duration(job["wait_seconds"]),
        "wait_exact": f"{job['wait_seconds']:.0f} s of cluster time",
        "gpu_hours": gpu_hours(job["gpu_hours"]),
        "restarts": job["restarts"],
        "submitted": clock(job["submitted_at"]).rpartition(":")[0],
        "submitted_exact": f"{clock(job['submitted_at'])} of cluster time",
    }


def is_unmeasured(job: JobOut) -> bool:
    """Return whether nothing is known of a command's progress: many never report any."""
    return job["runs_command"] and job["progress"] == 0


def wanted(job: JobOut) -> str:
    """`1 to 16`, `4`, `2 or more`."""
    if job["adaptivity"] == "rigid":
        return str(job["gpu_count"])
    if job["max_gpus"] is None:
        return f"{job['min_gpus']} or more"
    return (
        str(job["min_gpus"])
        if job["min_gpus"] == job["max_gpus"]
        else f"{job['min_gpus']} to {job['max_gpus']}"
    )
