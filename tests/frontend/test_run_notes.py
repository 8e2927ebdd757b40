"""Notes on a simulation's runs: those on what is left out of a trace stand above its figures."""

from __future__ import annotations

from typing import Any

from frontend.pages.simulation.tables import notes

LEFT_OUT = "1 of 3 records of the trace was left out, with 2 GPU-hours: num_gpus is no number."
IDLE = "No job of the trace can run on a100: its 16 GPUs stay idle."


def run(policy: str, *lines: str) -> dict[str, Any]:
    return {
        "name": policy,
        "policy": policy,
        "placer": "packed",
        "seed": 0,
        "trace": 0,
        "parameters": {},
        "placer_parameters": {},
        "summary": {"notes": list(lines), "unfinished_because": {"j1": "It waits."}},
    }


def test_what_is_left_out_of_a_trace_is_told_apart_from_other_notes_and_once_for_all_runs() -> None:
    runs: Any = [run("sia", LEFT_OUT, IDLE), run("fifo", LEFT_OUT)]
    above = [line.children for line in notes(runs, left_out=True)]
    below = [line.children for line in notes(runs, left_out=False)]
    assert len(above) == 1
    assert above[0].endswith(f": {LEFT_OUT}")
    assert "sia" in above[0]
    assert "fifo" in above[0]
    assert any(line.endswith(IDLE) for line in below)
    assert any("j1 did not finish. It waits." in line for line in below)
    assert not any(LEFT_OUT in line for line in below)
