"""Whatever is killed and whenever: one supervisor at most, each rank runs once, nothing is left."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from attempts import LEAVES_CHILDREN, Attempt, until

from maat.launch import control
from maat.launch.attempt_dir import Standing

NewAttempt = Callable[..., Attempt]


def _start(attempt: Attempt, chance: random.Random) -> None:
    attempt.start()


def _start_in_a_worker_that_dies(attempt: Attempt, chance: random.Random) -> None:
    worker = attempt.start_in_a_worker()
    if chance.random() < 0.7 and worker.stdout is not None:
        until(attempt.folder.exists)
        time.sleep(chance.uniform(0, 0.05))
    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate()


def _stop(attempt: Attempt, chance: random.Random) -> None:
    control.stop(attempt.directory)


def _kill(attempt: Attempt, chance: random.Random) -> None:
    control.kill(attempt.directory)


def _conclude(attempt: Attempt, chance: random.Random) -> None:
    if attempt.directory.standing() is Standing.LOST:
        control.conclude_lost([attempt.directory])


def _wait(attempt: Attempt, chance: random.Random) -> None:
    time.sleep(chance.uniform(0, 0.1))


def _signals_one_of(
    whom: Callable[[Attempt], Sequence[int]], numbers: Sequence[signal.Signals]
) -> Callable[[Attempt, random.Random], None]:
    def send(attempt: Attempt, chance: random.Random) -> None:
        pids = whom(attempt)
        if pids:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(pids), chance.choice(numbers))

    return send


ACTS = {
    _start: 4,
    _start_in_a_worker_that_dies: 1,
    _stop: 1,
    _kill: 1,
    _conclude: 2,
    _wait: 4,
    _signals_one_of(Attempt.supervisors, [signal.SIGKILL]): 2,
    _signals_one_of(Attempt.supervisors, [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]): 1,
    _signals_one_of(Attempt.processes, [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP]): 2,
}


def _live_and_die(attempt: Attempt, chance: random.Random) -> None:
    for _ in range(10):
        act = chance.choices(list(ACTS), list(ACTS.values()))[0]
        act(attempt, chance)
        # A supervisor that starts is two processes for a moment, one of which is ending.
        until(lambda: len(attempt.supervisors()) <= 1)

    control.kill(attempt.directory)
    until(lambda: attempt.directory.standing() not in {Standing.STARTING, Standing.RUNNING})
    if attempt.directory.standing() is Standing.LOST:
        control.conclude_lost([attempt.directory])
    assert attempt.processes() == []
    until(lambda: not attempt.supervisors())
    if attempt.directory.standing() is Standing.ENDED:
        assert not attempt.start()
    assert all(log.count("ready") <= 1 for log in attempt.logs())
    assert not attempt.directory.has("secrets.json") or not attempt.directory.has("started.json")


@pytest.mark.parametrize("seed", range(10))
def test_a_random_sequence_of_kills(new_attempt: NewAttempt, seed: int) -> None:
    _live_and_die(new_attempt(LEAVES_CHILDREN, stop_seconds=0.2), random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 200))
def test_many_random_sequences_of_kills(new_attempt: NewAttempt, seed: int) -> None:
    _live_and_die(new_attempt(LEAVES_CHILDREN, stop_seconds=0.2), random.Random(seed))
