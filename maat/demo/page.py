"""The report of a run: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from maat.demo import figures
from maat.demo.recording import Job, Recording
from maat.demo.replay import LACKS, Compared

QUIET_LOAD = 1.0
"""With as many processes at work beside it a run is not one of a quiet machine."""

_CSS = """
body{font:16px/1.5 system-ui,sans-serif;color:#1c2128;max-width:1080px;margin:2rem auto;
padding:0 1rem}h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem}
table{border-collapse:collapse;margin:.6rem 0}td,th{padding:.25rem .9rem .25rem 0;text-align:right;
border-bottom:1px solid #e2e5ea;font-variant-numeric:tabular-nums}
td:first-child,th:first-child{text-align:left}th{font-weight:600}.note{color:#59636e}
"""


def write_page(recording: Recording, compared: Sequence[Compared], path: Path) -> None:
    """Write the report; raises OSError if it cannot be written."""
    path.write_text(_page(recording, compared), encoding="utf-8")


def verdict(recording: Recording, compared: Sequence[Compared]) -> str:
    """Return what the run showed, in a sentence or two."""
    average, makespan = compared[0], compared[1]
    lost = sum(life.outcome == "lost" for job in recording.jobs for life in job.lives)
    return (
        f"{len(recording.jobs)} jobs trained to their end in {recording.makespan:.0f} s, through "
        f"{len(recording.outages)} outage of a node (attempts lost: {lost}). The simulator, with "
        f"what the run measured, says {average.error:+.1%} for the average JCT and "
        f"{makespan.error:+.1%} for the makespan."
    )


def machine_in_words(load: float) -> str:
    """Return how busy the machine was with other things before the run, and what that means."""
    busy = f"In the minute before the run {load:.1f} processes kept this machine busy"
    if load < QUIET_LOAD:
        return f"{busy}."
    return f"{busy}: what others took of it makes the live run slower than its measurements say."


def belief_errors(job: Job) -> list[tuple[str, float]]:
    """Return, by GPU type, the mean relative error of the believed time of a pass.

    Against the law of the device, at the batch sizes that were measured.
    """
    found = []
    for fit in job.belief["types"]:
        kind = fit["gpu_type"]
        batch = np.array(
            sorted({row["per_gpu_batch_size"] for row in job.samples if row["gpu_type"] == kind}),
            dtype=np.float64,
        )
        fixed, per_sample = job.laws[kind]
        believed = figures.believed_pass(job, kind, batch)
        found.append((kind, float(np.abs(believed / (fixed + per_sample * batch) - 1).mean())))
    return found


def _page(recording: Recording, compared: Sequence[Compared]) -> str:
    parts = [
        f"<h1>{escape(verdict(recording, compared))}</h1>",
        "<p class=note>The GPUs are emulated: gradients, their exchange (gloo) and checkpoints are "
        "real, and each pass then sleeps until the GPU of its law would be done with it. Step "
        "times, noise and restarts below were measured by the agents in the scripts.</p>",
        _section("What ran where", figures.occupancy(recording), first=True),
        "<p class=note>Pale: the processes start, and restore the checkpoint.</p>",
        _section("Measured, believed, true", figures.fits(recording)),
        _table(
            ("job", "GPU type", "believed time of a pass against the law", "error of the fit"),
            [
                (job.name, kind, f"{error:.1%} off", f"{_fit_error(job, kind):.1%}")
                for job in recording.jobs
                for kind, error in belief_errors(job)
            ],
        ),
        _section("How much batches disagree", figures.noise(recording)),
        "<p class=note>Up to about its noise scale, a larger batch is worth its samples.</p>",
        "<h2>Restarts</h2>",
        _restarts(recording.jobs),
        "<h2>Live and simulated</h2>",
        _table(
            ("", "live", "simulated", "difference"),
            [
                (row.what, f"{row.live:.0f} s", f"{row.simulated:.0f} s", f"{row.error:+.1%}")
                for row in compared
            ],
        ),
        f"<p class=note>{machine_in_words(recording.load)}</p>",
        "<p class=note>What the simulator lacks: " + "; ".join(map(escape, LACKS)) + ".</p>",
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Maat: a run that trained'
        f"</title><style>{_CSS}</style><body>{''.join(parts)}</body></html>"
    )


def _restarts(jobs: Sequence[Job]) -> str:
    names = [part["name"] for part in jobs[0].belief["restart"]]
    return _table(
        ("job", "attempts", *names, "in all"),
        [
            (
                job.name,
                str(len(job.lives)),
                *(f"{part['seconds']:.1f} s" for part in job.belief["restart"]),
                f"{job.belief['restart_seconds']:.1f} s",
            )
            for job in jobs
        ],
    )


def _fit_error(job: Job, kind: str) -> float:
    return next(float(fit["error"]) for fit in job.belief["types"] if fit["gpu_type"] == kind)


def _section(title: str, figure: go.Figure, *, first: bool = False) -> str:
    html: str = figure.to_html(
        full_html=False, include_plotlyjs=first, config={"displayModeBar": False}
    )
    return f"<h2>{escape(title)}</h2>{html}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + row(head, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"
