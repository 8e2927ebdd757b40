"""What the parts of charts stand for: every address that a figure gives is a page's."""

from __future__ import annotations

from typing import Any

import pytest
from frontend_samples import record, rounds, spans, step_samples
from sweep_samples import sweep

from frontend.figures.contest import ratio_figure
from frontend.figures.job_timeline import job_timeline_figure
from frontend.figures.matrix import matrix_figure
from frontend.figures.matrix_rows import rows_of
from frontend.figures.rounds import prices_figure
from frontend.figures.step_times import step_times_figure
from frontend.figures.sweep import sweep_figure
from frontend.figures.usage import usage_figure
from frontend.pages.job.run_parts import samples_table
from frontend.pages.overview.summary import change_lines, verdict
from frontend.pages.rounds.summary import verdict_of
from frontend.pages.simulation.contest import differences
from frontend.pages.simulation.verdict import sentences
from frontend.pages.sweep import table
from maat.api.clusters import HeldOut, HoldingChangeOut


def test_a_price_a_cell_and_a_step_lead_to_their_round_job_and_cluster() -> None:
    prices = prices_figure(rounds(), scheme="light")
    assert list(prices.data[0].customdata) == ["/rounds/1", "/rounds/2", "/rounds/3"]
    assert prices.layout.dragmode == "zoom"
    assert prices.layout.meta["zooms"]

    seen = {**record(), "job_ids": ["job_a", "other-1", "job_c"], "others": [1]}
    cells = matrix_figure(seen, scheme="light").data[0]
    assert [set(row) for row in cells.customdata] == [{"/jobs/job_a"}, {None}, {"/jobs/job_c"}]

    steps = {"at": [f"2026-11-20T10:0{minute}:00Z" for minute in range(3)], "value": [1, 2, 3]}
    usage = usage_figure({"t4": steps}, {"t4": steps}, [7, 8, 9], scheme="light")
    assert usage.data[0].customdata[0] == "/cluster?round=7"

    timeline = job_timeline_figure(
        spans(), now="2026-11-20T11:00:00Z", submitted_at="2026-11-20T09:00:00Z", scheme="light"
    )
    for trace in timeline.data:
        assert len(trace.customdata) == len(trace.x)
    assert {*timeline.data[0].customdata} == {"/cluster?round=1"}


def ids_in(content: Any) -> set[str]:
    """The ids of the rows of a table."""
    found = {content.id} if getattr(content, "id", None) else set()
    children = getattr(content, "children", None)
    for child in children if isinstance(children, list) else [children]:
        found |= ids_in(child) if child is not None and not isinstance(child, str) else set()
    return found


def test_a_dot_leads_to_the_row_of_the_page_that_tells_its_figures() -> None:
    known = sweep()
    interval = {"estimate": 1.1, "low": 0.9, "high": 1.3}
    paired = {
        "contestant": 1, "difference_hours": interval, "ratio": interval, "sooner": 0.5,
        "jobs": 4, "runs": 1, "left_out": 0, "verdict": "faster",
    }  # fmt: skip
    contest: Any = {
        "contestants": [{"name": "sia"}, {"name": "fifo"}], "baseline": 0, "paired": [paired],
    }  # fmt: skip
    steps = step_samples()
    charts = [
        (sweep_figure(known, "avg_jct_hours", scheme="light"), table(known), 3),
        (ratio_figure(contest, scheme="light"), differences(contest), 1),
        (step_times_figure(steps, [], scheme="light"), samples_table(steps), len(steps)),
    ]

    for drawn, rows, dots in charts:
        parts = {address for trace in drawn.data for address in trace.customdata}
        assert len(parts) == dots
        assert {address.removeprefix("#") for address in parts} == ids_in(rows)


def test_the_matrix_is_searched_sorted_and_says_what_was_next_best() -> None:
    seen = {**record(), "job_ids": ["job_a", "job_b", "job_c"]}
    assert rows_of(seen) == [0, 1, 2]
    assert rows_of(seen, sought=" TRAIN") == [0, 2]
    # Of job 0 180 of 400, job 1 waits, job 2 has its best.
    assert rows_of(seen, order="loss") == [1, 0, 2]

    drawn = matrix_figure(seen, scheme="light", rows=[2]).data[0]
    assert len(drawn.y) == 1
    hover = drawn.hovertext[0][0]
    assert "It has a100 16 · 2n." in hover
    assert "Second: a100 1, 50 samples/s." in hover
    assert matrix_figure(seen, scheme="light", rows=[]).layout.meta["state"] == "empty"


def test_a_round_is_told_as_what_jobs_lost_changed_and_got() -> None:
    def change(job: str, before: HeldOut | None, after: HeldOut | None) -> HoldingChangeOut:
        return {"job_id": job, "job_name": job, "before": before, "after": after}

    def of(gpu_type: str, gpu_count: int) -> HeldOut:
        return {"gpu_type": gpu_type, "gpu_count": gpu_count}

    changes = [
        change("d", None, of("t4", 4)),
        change("b", of("t4", 4), of("t4", 2)),
        change("c", of("t4", 1), of("a100", 1)),
        change("a", of("t4", 2), None),
        change("other-1", of("t4", 2), None),
    ]

    assert change_lines(changes) == [
        ("a", "a", "holds no GPU any more"),
        ("b", "b", "shrank from 4 to 2 × t4"),
        ("c", "c", "moved from 1 × t4 to 1 × a100"),
        ("d", "d", "got 4 × t4"),
    ]
    cell = {"held": True, "job_id": "a"}
    state: Any = {"gpus": [cell, cell, {"held": False, "job_id": None}]}
    assert verdict(state, running=1, waiting=2, failed=0) == (
        "1 job runs on 2 of 3 GPUs, 2 jobs waiting for GPUs."
    )


@pytest.mark.parametrize(
    ("gap", "fallback", "end"),
    [
        (1e-12, False, "No other choice is better."),
        (0.012, False, "At most 1.2 % better is possible."),
        (None, False, "2 changes."),
        (0.5, True, "2 changes."),
    ],
)
def test_a_round_says_how_sure_it_is(gap: float | None, fallback: bool, end: str) -> None:
    counts = {"gpus_used": 3, "gpus_total": 4, "running_jobs": 2, "pending_jobs": 0, "changes": 2}
    entry: Any = {**counts, "gap": gap, "fallback": fallback}

    told = verdict_of(entry)

    assert told.startswith("2 jobs on 3 of 4 GPUs, nobody waits, 2 changes.")
    assert told.endswith(end)


def test_a_simulation_says_who_is_faster_by_how_much_and_how_surely() -> None:
    def row(contestant: int, hours: float, verdict: str, basis: str) -> dict[str, Any]:
        spread = {"estimate": hours, "low": None, "high": None}
        said = {"verdict": verdict, "basis": basis, "jobs": 25, "left_out": 0}
        return {"contestant": contestant, "difference_hours": spread, **said}

    figures = {"avg_jct_hours": {"mean": 10.0, "deviation": None, "runs": 1}}
    found: Any = {
        "baseline": 0,
        "contestants": [
            {"name": name, "figures": figures} for name in ("fifo", "sia", "srtf", "las")
        ],
        "paired": [
            row(2, 0.5, "slower", "seeds") | {"jobs": 15, "left_out": 10},
            row(1, -1.6, "not told apart", "jobs"),
            row(3, 0.004, "not told apart", "jobs"),
        ],
    }

    assert sentences(found) == [
        "sia: mean JCT 16 % lower than fifo, not certain on one seed.",
        "las: the same mean JCT as fifo, on one seed.",
        "srtf: mean JCT 5 % higher than fifo, over the seeds of one trace, without the 10 of 25 "
        "jobs that not both finished.",
    ]
