"""A comparison in sentences: who served jobs sooner than the baseline, by how much, how surely."""

from __future__ import annotations

from frontend.formatting import count, percent, plural
from maat.api.simulation_answers import Comparison, PairedDifference

MOST_SENTENCES = 4
NO_DIFFERENCE = 0.0005  # of the mean JCT: less than a percentage with one decimal shows
MEAN_JCT = "avg_jct_hours"
BASES = {
    "traces": "over these traces",
    "seeds": "over the seeds of one trace",
    "jobs": "on one seed",
}


def sentences(comparison: Comparison) -> list[str]:
    """Return one sentence for each contestant, the one that lowers the mean JCT most first."""
    contestants = comparison["contestants"]
    names = [contestant["name"] for contestant in contestants]
    base = contestants[comparison["baseline"]]["figures"].get(MEAN_JCT)
    if base is None or not base["mean"]:
        return []
    rows = sorted(comparison["paired"], key=lambda row: row["difference_hours"]["estimate"])
    told = [
        _sentence(row, names[row["contestant"]], names[comparison["baseline"]], base["mean"])
        for row in rows[:MOST_SENTENCES]
    ]
    left = len(rows) - len(told)
    return [*told, f"{left} more below."] if left else told


def _sentence(row: PairedDifference, name: str, baseline: str, base_hours: float) -> str:
    share = row["difference_hours"]["estimate"] / base_hours
    where = BASES[row["basis"]] + _left_out(row)
    if abs(share) < NO_DIFFERENCE:
        return f"{name}: the same mean JCT as {baseline}, {where}."
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
