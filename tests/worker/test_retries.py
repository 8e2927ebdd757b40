"""When a job is started again whose attempt ended badly."""

from __future__ import annotations

import pytest

from backend.models import AttemptRow
from maat.vocabulary import Outcome
from worker.training.retries import held_back, standing_of

S, F, L = Outcome.STOPPED, Outcome.FAILED, Outcome.LOST
CANCELLED, REFUSED, NEVER = Outcome.CANCELLED, Outcome.REFUSED, Outcome.NEVER_STARTED


def lives(
    *outcomes: Outcome, codes: tuple[int, ...] = (), saves: int | None = None
) -> list[AttemptRow]:
    """Return attempts that ended so; `saves`: the attempt that saved a checkpoint."""
    return [
        AttemptRow(
            job_id="job",
            cluster_id="here",
            number=number,
            round_number=number,
            state="ended",
            outcome=outcome.value,
            reason="It fell.",
            reports=False,
            gpu_type="t4",
            gpus_by_node={"t4-0": [0]},
            gpu_count=1,
            ordered_seconds=100.0 * number,
            ended_seconds=100.0 * number + 10.0,
            exits={"0": codes[number - 1] if codes else 1},
            checkpoint_step=7 if number == saves else None,
        )
        for number, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "seconds"),
    [
        ((F,), 10.0),
        ((F, F, F), 40.0),
        ((F,) * 9, 600.0),
        ((L,) * 5, 0.0),
        ((S, L, S), 0.0),
        ((REFUSED,), 10.0),
        ((REFUSED, REFUSED, NEVER, REFUSED), 40.0),
        ((REFUSED, L), 0.0),
        ((F, REFUSED), 10.0),
        ((CANCELLED,), 0.0),
        ((CANCELLED, CANCELLED), 600.0),
        ((CANCELLED, L, CANCELLED), 0.0),
        ((CANCELLED, NEVER, CANCELLED), 600.0),
    ],
)
def test_the_pause_after_an_end(outcomes: tuple[Outcome, ...], seconds: float) -> None:
    attempts = lives(*outcomes)
    standing = standing_of(attempts, max_retries=100)
    ended = attempts[-1].ended_seconds
    assert ended is not None
    assert standing.may_start(ended + seconds)
    assert seconds == 0.0 or not standing.may_start(ended + seconds - 0.1)
    told = held_back(standing, attempts, ended)
    assert (told is None) == (seconds == 0.0)
    assert told is None or told["wait_seconds"] == pytest.approx(seconds)


def test_the_same_failure_again_and_again_is_a_crash_loop_and_lost_nodes_are_none() -> None:
    assert standing_of(lives(F, F, F), 100).crashes
    assert standing_of(lives(F, L, F, S, F), 100).crashes
    assert not standing_of(lives(F, F), 100).crashes
    assert not standing_of(lives(F, F, F, codes=(1, 1, 2)), 100).crashes
    assert not standing_of(lives(F, F, F, saves=2), 100).crashes
    assert not standing_of(lives(L, L, L), 100).crashes


def test_a_job_fails_by_its_own_failures_alone() -> None:
    assert standing_of(lives(F, F), max_retries=1).has_failed
    assert not standing_of(lives(F, L, L, L), max_retries=1).has_failed
    assert not standing_of(lives(F, REFUSED, REFUSED), max_retries=1).has_failed
