"""A comparison in sentences: who served jobs sooner than the baseline, by how much, how surely."""

from __future__ import annotations

from frontend.formatting import count, number, percent, plural
from maat.api.simulation_answers import ComparedContestant, Comparison, PairedDifference

MOST_SENTENCES = 4
NO_DIFFERENCE = 0.0005  # of the mean JCT: less than a percentage with one decimal shows
MEAN_JCT = "avg_jct_hours"
NOT_ALL_RUN = "not all jobs can run"
BASES = {
    "traces": "over these traces",
    "seeds": "over the seeds of one trace",
    "jobs": "on one seed",
}


def sentences(comparison: Comparison) -> list[str]:
    """Return one sentence for each contestant, the one that lowers the mean JCT most first.

    Before them, under whom jobs can never run: a mean over the other jobs is no merit.
    """
    contestants = comparison["contestants"]
    names = [contestant["name"] for contestant in contestants]
    never = [words for contestant in contestants for words in _never(contestant)]
    base = contestants[comparison["baseline"]]["figures"].get(MEAN_JCT)
    if base is None or not base["mean"]:
        return never
    rows = sorted(
        comparison["paired"],
        key=lambda row: (row["verdict"] == NOT_ALL_RUN, row["difference_hours"]["estimate"]),
    )
    told = [
        _sentence(row, names[row["contestant"]], names[comparison["baseline"]], base["mean"])
        for row in rows[:MOST_SENTENCES]
    ]
    left = len(rows) - len(told)
    return [*never, *told, *([f"{left} more below."] if left else [])]


def _never(contestant: ComparedContestant) -> list[str]:
    """`14 of 30 jobs cannot run under fifo + packed.`: on average over the runs."""
    never, jobs = (contestant["figures"].get(name) for name in ("cannot_run", "jobs"))
    if never is None or jobs is None or not never["mean"]:
        return []
    average = "On average " if jobs["runs"] > 1 else ""
    of = f"{average}{number(never['mean'])} of {number(jobs['mean'])} jobs"
    return [f"{of} cannot run under {contestant['name']}."]


def _sentence(row: PairedDifference, name: str, baseline: str, base_hours: float) -> str:
    share = row["difference_hours"]["estimate"] / base_hours
    where = BASES[row["basis"]] + _left_out(row)
    if abs(share) < NO_DIFFERENCE:
        return f"{name}: the same mean JCT as {baseline}, {where}."
    if row["verdict"] == NOT_ALL_RUN:
        side = "lower" if share < 0 else "higher"
        counted = f"of the {plural(row['jobs'], 'job')} that ended under both, mean JCT"
        difference = f"{percent(abs(share))} {side} than {baseline}, {BASES[row['basis']]}"
        return f"{name}: {counted} {difference}."
    if row["verdict"] == "not told apart":
        side = "lower" if share < 0 else "higher"
        return (
            f"{name}: mean JCT {percent(abs(share))} {side} than {baseline}, not certain {where}."
        )
    side = "lower" if row["verdict"] == "faster" else "higher"
    return f"{name}: mean JCT {percent(abs(share))} {side} than {baseline}, {where}."


def _left_out(row: PairedDifference) -> str:
    """What the difference does not count: a job that never finished has no JCT."""
    out = row["left_out"]
    if not out:
        return ""
    of = f"{count(out)} of {plural(out + row['jobs'], 'job')}"
    return f", without the {of} that not both finished"
