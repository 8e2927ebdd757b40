"""Attempts of real processes: stops that all agree on, any number of replicas, plans, reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from report_server import Server
from training_runs import Run

from maat.api.attempts import ReportBody

pytestmark = pytest.mark.needs_torch
NewRun = Callable[..., Run]

PLAN = {
    "number": 7,
    "total_batch_size": 256,
    "per_gpu_batch_size": 64,
    "accumulation_steps": 1,
}


@pytest.fixture(scope="module")
def unmoved(new_run: NewRun) -> Run:
    """A job that one replica does without a stop."""
    run = new_run()
    assert run.attempt(1) == {"0": 0}, run.logs()
    return run


def test_a_job_on_1_2_and_1_replicas_goes_the_way_of_one_that_never_moves(
    new_run: NewRun, unmoved: Run, server: Server
) -> None:
    moved = new_run(server=server.url)
    assert moved.attempt(1, stop_at=10) == {"0": 143}, moved.logs()
    # Only the last rank is told: all stop, after the same step, loader workers or not.
    assert moved.attempt(2, stop_at=30, workers=1) == {"0": 143, "1": 143}, moved.logs()
    second = server.taken[-1]
    assert moved.attempt(1) == {"0": 0}, moved.logs()
    steps = [each["step"] for each in moved.steps]
    assert steps == list(range(48)), "each step once"
    apart = [abs(a["loss"] - b["loss"]) for a, b in zip(moved.steps, unmoved.steps, strict=True)]
    assert max(apart) < 1e-6
    assert len(list(moved.checkpoints.glob("step-*"))) == 2

    assert not server.malformed
    assert server.tokens == {"Bearer token-of-the-attempt"}
    assert "/api/v1/attempts/att_2/reports" in server.paths
    assert (second.world_size, second.kind) == (2, "bye")
    assert second.checkpoint is not None
    assert second.checkpoint.step == second.progress.steps
    assert 32 <= second.checkpoint.step < 48, "told at 30, heard at once or after a pause"
    own = 3 * 1024 - second.progress.effective_samples  # of the third attempt
    assert server.heard[-1]["finished"]
    assert not second.finished
    assert server.heard[-1]["progress"] == {
        "effective_samples": 3 * 1024,
        "steps": 48,
        "epoch": 3,
        "total_effective_samples": 3 * 1024,
        "processed_samples": float(own),
        "gained_samples": float(own),
    }
    ReportBody.model_validate({k: v for k, v in moved.report().items() if k != "at"})


@pytest.mark.long
def test_a_plan_of_the_server_is_followed_by_all_and_a_stop_ends_them_saved(
    new_run: NewRun,
) -> None:
    with Server() as server:

        def answer(body: ReportBody) -> tuple[int, dict[str, Any]]:
            ran = any(each.accumulation_steps == 1 and each.steps > 2 for each in body.passes)
            compared = body.ranks is not None
            plan = PLAN if body.plan_number < 7 else None
            return 200, {"plan": plan, "stop": ran and compared}

        server.answer = answer
        run = new_run(server=server.url, asked={"pause": 0.01, "epochs": 400})
        assert run.attempt(2) == {"0": 143, "1": 143}, run.logs()
    assert not server.malformed
    batches = {each["batch"] for each in run.steps}
    assert batches >= {32, 64}
    assert max(batches) == 64, "only the rest of a pass over the data may have less"
    passes = [(each.per_gpu_batch_size, each.accumulation_steps) for each in found_passes(server)]
    assert set(passes) <= {(32, 0), (64, 1)}
    assert (64, 1) in passes
    assert all(0 < each.sync_seconds <= each.step_seconds.mean for each in found_passes(server))
    by_step = [each["batch"] for each in run.steps].count(64)
    assert by_step % 2 == 0, "two passes each step"
    assert server.taken[-1].plan_number == 7
    assert len({each.incarnation for each in server.taken}) == 1
    compared = [each.ranks.compute_seconds for each in server.taken if each.ranks is not None]
    assert compared
    assert all(len(each) == 2 and min(each) > 0.01 for each in compared)  # each step sleeps so long
    numbers = json.loads((sorted(run.checkpoints.iterdir())[-1] / "agent.json").read_text())
    assert numbers["step"] == server.taken[-1].progress.steps


def found_passes(server: Server) -> list[Any]:
    return [each for body in server.taken for each in body.passes]
