"""A run that a service played, with tables and figures like those of a run of `maat.simulate`."""

from __future__ import annotations

import html
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from maat.library.plots import RunPlots
from maat.library.run import summary_table
from maat.library.tables import Table

if TYPE_CHECKING:
    from maat.api.simulation_answers import RunResult


@dataclass(frozen=True, eq=False, repr=False)
class PlayedRun:
    """A run that a service played: its figures (`summary`), and tables of its jobs and rounds.

    Times are in seconds of the simulation, from 0. `result` is the service's answer.
    """

    name: str
    result: RunResult
    seed: int = 0
    trace = ""  # the window's, which has no name

    @property
    def line(self) -> str:
        """The name of who had it, as figures show it."""
        return self.name

    @property
    def summary(self) -> Mapping[str, Any]:
        """The figures of the run, as `maat simulate --json` prints them."""
        return self.result["summary"]

    @cached_property
    def jobs(self) -> Table:
        """One row per job; without a start, a finish or a time where there was none."""
        return Table(
            {
                "name": str,
                "model": str,
                "submit_seconds": float,
                "start_seconds": float,
                "finish_seconds": float,
                "jct_seconds": float,
                "waited_seconds": float,
                "restarts": int,
                "gpu_seconds": float,
                "adaptivity": str,
                "interruptions": int,
                "rho": float,
                "placement_slowdown": float,
            },
            [
                (
                    job["name"],
                    job["model"],
                    job["submit"],
                    job["start"],
                    job["finish"],
                    job["jct"],
                    job.get("waited"),
                    job["restarts"],
                    3600.0 * sum(job["gpu_hours_by_type"].values()),
                    job["adaptivity"],
                    job["interruptions"],
                    job["rho"],
                    job.get("placement_slowdown"),
                )
                for job in self.result["jobs"]
            ],
        )

    @cached_property
    def rounds(self) -> Table:
        """One row per moment at which a figure changes: active jobs, GPUs held, and by type.

        Of a long run the service keeps a part of the moments.
        """
        active = cast("Sequence[Sequence[float]]", self.result["contention"])
        by_type = cast("Mapping[str, Sequence[Sequence[float]]]", self.result["gpus_by_type"])
        times = sorted({at for series in (active, *by_type.values()) for at, _ in series})
        rows = []
        for time in times:
            held = [_at(series, time) for series in by_type.values()]
            rows.append((time, _at(active, time), sum(held), *held))
        types = {f"{name}_gpus": int for name in by_type}
        return Table({"time_seconds": float, "active_jobs": int, "gpus": int, **types}, rows)

    @cached_property
    def gpus(self) -> Table:
        """GPUs in use from `time_seconds` to the next row's: all, and of each type."""
        by_type = cast("Mapping[str, Sequence[Sequence[float]]]", self.result["gpus_by_type"])
        times = sorted({at for series in by_type.values() for at, _ in series})
        used = [(time, [_at(series, time) for series in by_type.values()]) for time in times]
        return Table(
            {"time_seconds": float, "gpus": int, **{f"{name}_gpus": int for name in by_type}},
            [(time, sum(counts), *counts) for time, counts in used],
        )

    @cached_property
    def efficiency(self) -> Table:
        """Mean statistical efficiency over time; empty of a run of an earlier version."""
        return Table(
            {"time_seconds": float, "efficiency": float}, self.result.get("efficiency", [])
        )

    @cached_property
    def nodes(self) -> Table:
        """Nodes in service over time; empty of a run of an earlier version."""
        kept = self.result.get("nodes", [])
        return Table(
            {"time_seconds": float, "nodes": int}, [(time, int(count)) for time, count in kept]
        )

    @property
    def plot(self) -> RunPlots:
        """The figures: `played.plot.jct_cdf()`, `played.plot.gpus_over_time()` and others."""
        return RunPlots({self.name: self})

    def __repr__(self) -> str:
        return f"{self.name}: {len(self.result['jobs'])} jobs, played by the service"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{summary_table(self.summary)}"


def _at(series: Sequence[Sequence[float]], time: float) -> int:
    """Return the value of a step series at a time; zero before it begins."""
    place = bisect_right(series, time, key=lambda step: step[0])
    return int(series[place - 1][1]) if place else 0
