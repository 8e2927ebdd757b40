"""Own policies run in processes of their own, so that none can hold up the service.

A process that does not answer in time is killed, and the policy has failed; the next question
starts another. It reads questions on its standard input and ends with the process that asks.

    python -m worker.own_policies module:Class
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any

from celery.platforms import set_pdeathsig

from backend.settings import Settings
from maat.scheduling.errors import MaatError, PolicyFailed
from maat.scheduling.own.failures import failure_of
from maat.scheduling.own.loading import OwnEntry, read_entry
from maat.scheduling.own.running import present_runner, run_own_policies_by
from maat.scheduling.rounds import Decision, RoundInput

log = logging.getLogger(__name__)

START_SECONDS = 120.0
"""In which a process must have imported its policy: a busy machine takes long for it."""
_LENGTH = struct.Struct("<Q")


class _Process:
    """A process that has one own policy. `where`: `module:Class`."""

    def __init__(self, where: str) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "worker.own_policies", where),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._has_started = False

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def answer(self, question: bytes, *, seconds: float) -> Any:
        """Return the answer. Raises TimeoutError, or EOFError if the process has ended."""
        if not self._has_started:
            _read(self._pipe(self._process.stdout), time.monotonic() + START_SECONDS)
            self._has_started = True
        until = time.monotonic() + seconds
        try:
            _write(self._pipe(self._process.stdin), question, until)
        except BrokenPipeError as ended:
            raise EOFError from ended
        return pickle.loads(_read(self._pipe(self._process.stdout), until))  # noqa: S301 - ours

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> int:
        if stream is None:
            raise EOFError
        os.set_blocking(stream.fileno(), False)
        return stream.fileno()


class Processes:
    """Answers questions to own policies: an idle process of the policy, or a new one."""

    def __init__(self, *, seconds: float) -> None:
        """Start none yet. `seconds`: how long a policy may take for an answer."""
        self._seconds = seconds
        self._idle: defaultdict[str, list[_Process]] = defaultdict(list)
        self._lock = threading.Lock()

    def __call__(
        self,
        where: str,
        knobs: Mapping[str, object],
        method: str,
        round_input: RoundInput,
        /,
        *,
        name: str,
    ) -> object:
        """Return what the policy's method answers. Raises what it raises, and PolicyFailed."""
        asked = (dict(knobs), method, replace(round_input, worked_out=None), name)
        question = pickle.dumps(asked)
        process = self._taken(where)
        try:
            answer = process.answer(question, seconds=self._seconds)
        except TimeoutError:
            process.end()
            clause = f"did not answer within {self._seconds:g} s, and was ended"
            raise PolicyFailed(name, clause) from None
        except EOFError:
            process.end()
            raise PolicyFailed(name, "ended the process that it ran in") from None
        with self._lock:
            self._idle[where].append(process)
        if isinstance(answer, MaatError):
            raise answer
        return answer

    def end(self) -> None:
        with self._lock:
            for idle in self._idle.values():
                while idle:
                    idle.pop().end()

    def _taken(self, where: str) -> _Process:
        with self._lock:
            idle = self._idle[where]
            while idle:
                process = idle.pop()
                if process.lives:
                    return process
                process.end()
        return _Process(where)


def run_own_policies_apart(settings: Settings) -> None:
    """Have the own policies of this process run in others. Call it before any is built."""
    run_own_policies_by(Processes(seconds=settings.own_policy_seconds))


def end_own_policies() -> None:
    """End the processes that answer nothing now, and have own policies run in this one."""
    runner = present_runner()
    run_own_policies_by(None)
    if isinstance(runner, Processes):
        runner.end()


def _write(pipe: int, message: bytes, until: float) -> None:
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        _, ready, _ = select.select([], [pipe], [], _left(until))
        if ready:
            left = left[os.write(pipe, left[: 1 << 16]) :]


def _read(pipe: int, until: float) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size, until))
    return _exactly(pipe, length, until)


def _exactly(pipe: int, size: int, until: float) -> bytes:
    read = bytearray()
    while len(read) < size:
        ready, _, _ = select.select([pipe], [], [], _left(until))
        if ready:
            part = os.read(pipe, min(size - len(read), 1 << 20))
            if not part:
                raise EOFError
            read += part
    return bytes(read)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _answered(entry: OwnEntry, question: bytes) -> bytes:
    """Answer a question in the policy's own process."""
    knobs, method, round_input, name = pickle.loads(question)  # noqa: S301 - ours
    try:
        policy = replace(entry, name=name).build(knobs)
        answer = getattr(policy, method)(round_input)
        if isinstance(answer, Decision):
            answer = replace(answer, reasons=dict(answer.reasons.items()))
        return pickle.dumps(answer)
    except MaatError as failed:
        return pickle.dumps(failed)
    except (Exception, SystemExit) as error:
        return pickle.dumps(failure_of(name, error))


def main(where: str) -> None:
    set_pdeathsig("SIGKILL")
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a policy prints is no answer
    entry = read_entry(where)
    _send(answers, b"")
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while len(head := questions.read(_LENGTH.size)) == _LENGTH.size:
            _send(answers, _answered(entry, questions.read(_LENGTH.unpack(head)[0])))


def _send(answers: IO[bytes], message: bytes) -> None:
    answers.write(_LENGTH.pack(len(message)) + message)
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
