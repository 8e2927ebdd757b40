"""Reads what a storm has left, and says what is wrong with it.

It knows of Maat the database, the files of attempts, and what the ranks wrote themselves.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from storm import Storm


class Life(NamedTuple):
    """From an attempt's first sign of life to its last, by one rank on one GPU."""

    begin: float
    end: float
    attempt: str


def figures(storm: Storm) -> dict[str, Any]:
    """Return what happened, as numbers."""
    attempts = storm.rows("SELECT outcome, kind FROM attempts")
    outcomes: dict[str, int] = defaultdict(int)
    for row in attempts:
        outcomes[row["outcome"] or "unfinished"] += 1
    return {
        "strikes": dict(storm.strikes),
        "jobs": len(storm.jobs),
        "attempts": len(attempts),
        "outcomes": dict(outcomes),
        "rounds": storm.rows("SELECT count(*) AS n FROM rounds")[0]["n"],
        "checkpoints": sum(line["what"] == "saved" for line in said(storm)),
    }


def wrongs(storm: Storm) -> dict[str, list[str]]:
    """Return everything that is wrong, by what was promised."""
    lines = said(storm)
    return {
        "jobs lost": list(_lost_jobs(storm)),
        "GPUs held twice": list(held_twice(lines)),
        "GPUs that an attempt did not hold": list(_not_its_own(storm, lines)),
        "double writers": list(double_writers(lines)),
        "steps done again": list(done_again(lines)),
        "processes left": list(_left(storm)),
        "holds left": [str(tuple(row)) for row in storm.rows("SELECT * FROM gpu_holds")],
        "ends that differ": list(_ends_that_differ(storm)),
        "history": list(_broken_history(storm)),
    }


def said(storm: Storm) -> list[dict[str, Any]]:
    """Return what the ranks wrote, by time."""
    if not storm.out.exists():
        return []
    lines = [json.loads(line) for line in storm.out.read_text().splitlines()]
    return sorted(lines, key=lambda line: float(line["at"]))


def _lost_jobs(storm: Storm) -> Iterator[str]:
    states = {row["id"]: row["state"] for row in storm.rows("SELECT id, state FROM jobs")}
    yield from (f"{job} was never stored" for job in storm.jobs if job not in states)
    yield from (f"{job} was stored twice" for job in states if job not in storm.jobs)
    yield from (f"{job} is {state}" for job, state in states.items() if state != "succeeded")
    well = storm.rows(
        "SELECT job_id, count(*) AS n FROM attempts "
        "WHERE outcome = 'succeeded' AND kind = 'train' GROUP BY job_id"
    )
    yield from (f"{row['job_id']} succeeded {row['n']} times" for row in well if row["n"] != 1)


def held_twice(lines: list[dict[str, Any]]) -> Iterator[str]:
    by_gpu: dict[str, dict[str, Life]] = defaultdict(dict)
    for line in lines:
        attempt, at = line["attempt"], line["at"]
        before = by_gpu[line["gpu"]].get(attempt)
        by_gpu[line["gpu"]][attempt] = Life(before.begin if before else at, at, attempt)
    for gpu, lives in by_gpu.items():
        for one, other in pairwise(sorted(lives.values())):
            if other.begin < one.end:
                yield f"{gpu}: {other.attempt} began {one.end - other.begin:.3f} s too early"


def _not_its_own(storm: Storm, lines: list[dict[str, Any]]) -> Iterator[str]:
    held = {
        row["id"]: {f"{n}/{i}" for n, held in json.loads(row["gpus_by_node"]).items() for i in held}
        for row in storm.rows("SELECT id, gpus_by_node FROM attempts")
    }
    for attempt, gpu in sorted({(line["attempt"], line["gpu"]) for line in lines}):
        if gpu not in held.get(attempt, ()):
            yield f"{attempt} ran on {gpu}"


def double_writers(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Find attempts that lived on, or wrote, once a newer one of their job had begun."""
    newest: dict[str, int] = {}
    for line in lines:
        job, number = line["job"], line["number"]
        if number < newest.get(job, 0):
            yield f"{job}: attempt {number} {line['what']} after {newest[job]} had begun"
        newest[job] = max(newest.get(job, 0), number)


def done_again(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Find steps that did not follow from the newest checkpoint.

    One whose writer was killed between the rename and its word of it may be there or not.
    """
    may_begin: dict[str, set[int]] = defaultdict(lambda: {0})
    at: dict[str, int] = {}
    for line in lines:
        job, step = line["job"], line.get("step")
        if line["profile"] or line["rank"] > 0 or step is None:
            continue
        if line["what"] == "begins" and step not in may_begin[job]:
            yield f"{job}: attempt {line['number']} began at step {step}, not {may_begin[job]}"
        elif line["what"] == "steps" and step != at[job] + 1:
            yield f"{job}: step {step} came after {at[job]}"
        elif line["what"] == "saving":
            may_begin[job] = may_begin[job] | {step}
        elif line["what"] == "saved":
            may_begin[job] = {step}
        if line["what"] == "begins":
            may_begin[job] = {step}
        at[job] = step


def _left(storm: Storm) -> Iterator[str]:
    mark = f"MAAT_ATTEMPT_DIR={storm.root}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                environment, command = (entry / "environ").read_bytes(), (entry / "cmdline")
                words = command.read_bytes()
            except OSError:
                continue
            if mark in environment or (b"shim" in words and str(storm.root).encode() in words):
                yield f"{entry.name}: {words.decode(errors='replace')}"
    yield from (f"{pid} of Maat" for pid in storm.up.processes())


def _ends_that_differ(storm: Storm) -> Iterator[str]:
    """Compare how attempts ended by the database and by their folders."""
    for row in storm.rows("SELECT * FROM attempts"):
        ended = storm.root / "attempts" / row["id"] / "exit.json"
        if row["state"] != "ended":
            yield f"{row['id']} is {row['state']}"
        elif row["outcome"] == "succeeded":
            codes = json.loads(ended.read_text())["codes"]
            if len(codes) != row["gpu_count"] or any(codes.values()):
                yield f"{row['id']} succeeded with {codes}"
        elif row["launched"] and not ended.exists():
            yield f"{row['id']} was launched, and nothing tells its end"


def _broken_history(storm: Storm) -> Iterator[str]:
    numbers = [row["number"] for row in storm.rows("SELECT number FROM rounds ORDER BY number")]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "rounds are missing"
    waiting = storm.rows("SELECT count(*) AS n FROM allocations WHERE to_seconds IS NULL")
    if waiting[0]["n"]:
        yield f"{waiting[0]['n']} spans have no end"
    attempts = storm.rows("SELECT job_id, number FROM attempts ORDER BY job_id, number")
    seen: dict[str, int] = defaultdict(int)
    for row in attempts:
        seen[row["job_id"]] += 1
        if row["number"] != seen[row["job_id"]]:
            yield f"{row['job_id']} has no attempt {seen[row['job_id']]}"
