"""The rules of attempts, on an engine that is late, forgets, lies and starts things twice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from maat.vocabulary import AttemptState, Outcome, StopReason
from worker.engines.protocol import Phase, Seen
from worker.training.attempts import (
    Attempt,
    End,
    Launch,
    Mark,
    Miss,
    Move,
    Rules,
    Stop,
    TakeGpus,
    Wait,
    after,
    heard,
    next_move,
)
from worker.training.haste import by_haste

RULES = Rules(queue=60, wake=600, start=300, silent=120, absent=10, kill=10)
S = AttemptState
RUNS = Seen(Phase.RUNNING)
ABSENT = Seen(Phase.ABSENT)
WAKES = Seen(Phase.QUEUED, wakes=True)
GPUS = 3


def _attempt(state: AttemptState, **fields: object) -> Attempt:
    launched = state not in (S.ORDERED, S.QUEUED)
    attempt = Attempt(state, reports=True, stop_seconds=30, rank_count=2, launched=launched)
    return replace(attempt, **fields)


def _mute(state: AttemptState, **fields: object) -> Attempt:
    """An attempt whose script has not begun the agent."""
    return replace(_attempt(state, alive_at=0.0, has_agent=False), **fields)


def _ended(*codes: int, **fields: object) -> Seen:
    return Seen(Phase.ENDED, exits=dict(enumerate(codes)), **fields)


@pytest.mark.parametrize(
    ("attempt", "seen", "now", "move"),
    [
        (_attempt(S.ORDERED), None, 0, TakeGpus()),
        (_attempt(S.ORDERED, stop_reason=StopReason.MOVED), None, 0, End(Outcome.NEVER_STARTED)),
        (_attempt(S.QUEUED, queued_at=0.0), None, 1, Launch()),
        (_attempt(S.QUEUED, queued_at=0.0, launched=True), ABSENT, 1, Launch()),
        (_attempt(S.QUEUED, queued_at=0.0, launched=True), RUNS, 1, Mark(S.STARTING)),
        (_attempt(S.QUEUED, queued_at=0.0, launched=True), RUNS, 1000, Mark(S.STARTING)),
        (
            _attempt(S.QUEUED, queued_at=0.0, launched=True),
            Seen(Phase.QUEUED),
            61,
            Stop(StopReason.NOT_STARTED),
        ),
        (_attempt(S.QUEUED, queued_at=0.0, launched=True), WAKES, 600, Wait()),
        (_attempt(S.QUEUED, queued_at=0.0, launched=True), None, 600, Wait()),
        (
            _attempt(S.QUEUED, queued_at=0.0, launched=True),
            WAKES,
            601,
            Stop(StopReason.NOT_STARTED),
        ),
        (_attempt(S.STARTING, alive_at=0.0), RUNS, 1, Wait()),
        (_attempt(S.STARTING, alive_at=0.0, reports=False), RUNS, 1, Mark(S.RUNNING)),
        (_attempt(S.STARTING, alive_at=0.0, last_report_at=1.0), RUNS, 1, Mark(S.RUNNING)),
        (_attempt(S.STARTING, alive_at=0.0), RUNS, 301, Stop(StopReason.SILENT)),
        (_mute(S.STARTING), RUNS, 60, Wait()),
        (_mute(S.STARTING), RUNS, 61, Mark(S.RUNNING)),
        (_mute(S.STARTING, last_report_at=60.0), RUNS, 61, Mark(S.RUNNING)),
        (_mute(S.RUNNING, running_at=61.0), RUNS, 9999, Wait()),
        (_mute(S.RUNNING, running_at=61.0, has_agent=True), RUNS, 9999, Wait()),
        (_mute(S.STARTING, is_profile=True), RUNS, 60, Wait()),
        (_mute(S.STARTING, is_profile=True), RUNS, 61, Stop(StopReason.NO_AGENT)),
        (_attempt(S.STARTING, alive_at=0.0, is_profile=True), RUNS, 61, Wait()),
        (_attempt(S.RUNNING, last_report_at=0.0), RUNS, 120, Wait()),
        (_attempt(S.RUNNING, last_report_at=0.0), RUNS, 121, Stop(StopReason.SILENT)),
        (_attempt(S.RUNNING, last_report_at=0.0, reports=False), RUNS, 9999, Wait()),
        (
            _attempt(S.RUNNING, last_report_at=0.0, is_profile=True, running_at=0.0),
            RUNS,
            60,
            Wait(),
        ),
        (
            _attempt(S.RUNNING, last_report_at=60.0, is_profile=True, running_at=0.0),
            RUNS,
            61,
            Stop(StopReason.PROFILED),
        ),
        (_attempt(S.RUNNING, last_report_at=0.0, running_at=0.0), RUNS, 61, Wait()),
        (_attempt(S.RUNNING, last_report_at=0.0), None, 1, Wait()),
        (_attempt(S.RUNNING, last_report_at=0.0), ABSENT, 1, Miss(True)),
        (_attempt(S.RUNNING, last_report_at=0.0, absent_since=1.0), RUNS, 5, Miss(False)),
        (_attempt(S.RUNNING, last_report_at=0.0, absent_since=1.0), ABSENT, 5, Wait()),
        (
            _attempt(S.STOPPING, stop_reason=StopReason.MOVED, stop_at=0.0, stop_told=True),
            RUNS,
            30,
            Wait(),
        ),
        (
            _attempt(S.STOPPING, stop_reason=StopReason.MOVED, stop_at=0.0, stop_told=True),
            RUNS,
            31,
            Stop(StopReason.MOVED, kill=True),
        ),
    ],
)
def test_every_situation_has_its_move(
    attempt: Attempt, seen: Seen | None, now: float, move: Move
) -> None:
    assert next_move(attempt, seen, RULES, now) == move


@pytest.mark.parametrize(
    ("fields", "seen", "outcome"),
    [
        ({}, _ended(0, 0), Outcome.SUCCEEDED),
        ({}, _ended(0, 3, first_failed=1), Outcome.FAILED),
        ({}, _ended(0), Outcome.LOST),
        ({}, _ended(-9, -9, by_engine=True), Outcome.LOST),
        ({"stop_reason": StopReason.MOVED}, _ended(143, 143), Outcome.STOPPED),
        ({"stop_reason": StopReason.MOVED}, _ended(0, 0), Outcome.STOPPED),
        ({"stop_reason": StopReason.MOVED, "finished": True}, _ended(0, 0), Outcome.SUCCEEDED),
        ({"stop_reason": StopReason.MOVED, "reports": False}, _ended(0, 0), Outcome.SUCCEEDED),
        ({"stop_reason": StopReason.MOVED, "reports": False}, _ended(143, 0), Outcome.STOPPED),
        ({"stop_reason": StopReason.SILENT}, _ended(-9, -9), Outcome.FAILED),
        ({"stop_reason": StopReason.NO_AGENT}, _ended(143, 143), Outcome.FAILED),
        ({"stop_reason": StopReason.NOT_STARTED}, _ended(), Outcome.REFUSED),
    ],
)
def test_an_end_is_told_by_exit_codes_and_by_who_asked(
    fields: dict[str, object], seen: Seen, outcome: Outcome
) -> None:
    attempt = replace(_attempt(S.RUNNING, last_report_at=0.0), **fields)
    move = next_move(attempt, seen, RULES, 1)
    assert isinstance(move, End)
    assert move.outcome is outcome


@pytest.mark.parametrize(
    ("fields", "codes", "finished"),
    [
        ({}, (0, 0), True),
        ({}, (0, 1), False),
        ({"has_agent": True}, (0, 0), False),
        ({"last_report_at": 1.0}, (0, 0), False),
        ({"is_profile": False}, (0, 0), False),
        ({"state": S.STOPPING, "stop_reason": StopReason.NO_AGENT}, (0, 0), False),
    ],
)
def test_a_profile_without_the_agent_that_ended_well_did_all_the_work(
    fields: dict[str, object], codes: tuple[int, ...], finished: bool
) -> None:
    attempt = replace(_mute(S.STARTING, is_profile=True), **fields)
    move = next_move(attempt, _ended(*codes), RULES, 1)
    assert isinstance(move, End)
    assert move.finished == finished
    assert ("is not run again" in move.reason) == finished


def test_a_profile_that_was_stopped_without_the_agent_says_what_to_do() -> None:
    attempt = _mute(S.STOPPING, is_profile=True, stop_reason=StopReason.NO_AGENT)
    move = next_move(attempt, _ended(143, 143), RULES, 70)
    assert isinstance(move, End)
    assert "does not use maat.agent. Add the five lines of docs/adaptive-script.md" in move.reason
    assert "--gpus" in move.reason


def test_the_end_of_a_failed_rank_names_a_disk_that_was_full() -> None:
    seen = _ended(143, 1, first_failed=1, full_folder="/data/a")
    move = next_move(_attempt(S.RUNNING, last_report_at=0.0), seen, RULES, 1)
    assert isinstance(move, End)
    assert move.reason == (
        "Rank 1 ended with exit code 1. The disk of /data/a was full: make room there."
    )


def test_the_end_of_a_failed_rank_says_which_and_how() -> None:
    move = next_move(
        _attempt(S.RUNNING, last_report_at=0.0), _ended(143, -9, first_failed=1), RULES, 1
    )
    assert isinstance(move, End)
    assert move.reason == "Rank 1 ended with signal 9."


@given(
    state=st.sampled_from(S),
    reason=st.none() | st.sampled_from(StopReason),
    phase=st.none() | st.sampled_from(Phase),
    launched=st.booleans(),
    now=st.floats(0, 1e6),
)
@settings(max_examples=300)
def test_an_attempt_ends_only_when_its_processes_cannot_live(
    state: AttemptState,
    reason: StopReason | None,
    phase: Phase | None,
    launched: bool,
    now: float,
) -> None:
    attempt = _attempt(state, stop_reason=reason, launched=launched, queued_at=0.0, alive_at=0.0)
    move = next_move(attempt, None if phase is None else Seen(phase), RULES, now)
    if isinstance(move, End):
        assert phase is Phase.ENDED or state is S.ORDERED or not launched


@dataclass
class _Truth:
    """What really runs of an attempt."""

    alive: bool = False
    ended: bool = False
    told_to_stop: bool = False
    hears_stop: bool = True
    starts: int = 0


@dataclass
class _Kept:
    """An attempt as stored, its job, its GPU, and the truth of it."""

    job: int
    gpu: int
    attempt: Attempt
    truth: _Truth = field(default_factory=_Truth)

    @property
    def is_live(self) -> bool:
        return self.attempt.state is not S.ENDED

    @property
    def holds_gpu(self) -> bool:
        return self.is_live and self.attempt.state is not S.ORDERED


class LyingEngine(RuleBasedStateMachine):
    """Jobs that are moved about on an engine which nobody can trust.

    The engine keeps one promise: an attempt that it calls ended is ended, and a launch of an ended
    attempt starts nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.kept: list[_Kept] = []

    def _live_of(self, job: int) -> list[_Kept]:
        return [one for one in self.kept if one.job == job and one.is_live]

    @rule(job=st.integers(0, 3), gpu=st.integers(0, GPUS - 1), reports=st.booleans())
    def a_round_places_a_job(self, job: int, gpu: int, reports: bool) -> None:
        self._ask_to_end(job, StopReason.MOVED)
        attempt = Attempt(S.ORDERED, reports=reports, stop_seconds=30, rank_count=1)
        self.kept.append(_Kept(job, gpu, attempt))

    @rule(job=st.integers(0, 3))
    def a_round_preempts_a_job(self, job: int) -> None:
        self._ask_to_end(job, StopReason.PREEMPTED)

    def _ask_to_end(self, job: int, reason: StopReason) -> None:
        for one in self._live_of(job):
            if one.attempt.stop_reason is None:
                one.attempt = replace(one.attempt, stop_reason=reason, stop_at=self.now)

    @rule(
        lie=st.sampled_from(["truth", "truth", "truth", "absent", "unknown", "queued"]),
        dies_between=st.booleans(),
        at=st.integers(0, 30),
    )
    def the_worker_looks(self, lie: str, dies_between: bool, at: int) -> None:
        live = [one for one in self.kept if one.is_live]
        if not live:
            return
        one = live[at % len(live)]
        seen = self._look(one, lie)
        move = next_move(one.attempt, seen, RULES, self.now)
        if isinstance(move, TakeGpus) and not self._may_take(one):
            return
        one.attempt = after(one.attempt, move, self.now)
        if not dies_between:
            self._tell(one, move)
            one.attempt = heard(one.attempt, move, self.now)

    def _may_take(self, one: _Kept) -> bool:
        held = {other.gpu for other in self.kept if other.holds_gpu}
        older = [x for x in self._live_of(one.job) if x is not one and x.holds_gpu]
        return one.gpu not in held and not older

    def _look(self, one: _Kept, lie: str) -> Seen | None:
        if one.truth.ended:
            return _ended(143)
        if lie == "unknown":
            return None
        if lie == "absent" or not one.truth.alive:
            return ABSENT
        return Seen(Phase.QUEUED) if lie == "queued" else RUNS

    def _tell(self, one: _Kept, move: Move) -> None:
        truth = one.truth
        if isinstance(move, Launch) and not truth.alive and not truth.ended:
            truth.alive, truth.starts = True, truth.starts + 1
        if isinstance(move, Stop):
            truth.told_to_stop = True
            if truth.alive and (move.kill or truth.hears_stop):
                truth.alive, truth.ended = False, True

    @rule(seconds=st.sampled_from([1.0, 5.0, 12.0, 70.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: any(one.truth.alive for one in self.kept))
    @rule(at=st.integers(0, 30), deaf=st.booleans(), reports=st.booleans())
    def a_process_lives_on(self, at: int, deaf: bool, reports: bool) -> None:
        alive = [one for one in self.kept if one.truth.alive]
        one = alive[at % len(alive)]
        one.truth.hears_stop = not deaf
        if reports and one.attempt.alive_at is not None:
            one.attempt = replace(one.attempt, last_report_at=self.now)

    @precondition(lambda self: any(one.truth.alive for one in self.kept))
    @rule(at=st.integers(0, 30))
    def a_process_dies(self, at: int) -> None:
        alive = [one for one in self.kept if one.truth.alive]
        truth = alive[at % len(alive)].truth
        truth.alive, truth.ended = False, True

    @invariant()
    def no_gpu_is_held_twice(self) -> None:
        held = [one.gpu for one in self.kept if one.holds_gpu]
        assert len(held) == len(set(held))

    @invariant()
    def what_lives_holds_its_gpu(self) -> None:
        for one in self.kept:
            if one.truth.alive:
                assert one.holds_gpu

    @invariant()
    def one_attempt_of_a_job_lives(self) -> None:
        alive = [one.job for one in self.kept if one.truth.alive]
        assert len(alive) == len(set(alive))

    @invariant()
    def nothing_starts_twice(self) -> None:
        assert all(one.truth.starts <= 1 for one in self.kept)

    def teardown(self) -> None:
        """Once nobody lies, everything that was asked to end does."""
        for job in range(4):
            self._ask_to_end(job, StopReason.CANCELLED)
        for _ in range(100):
            self.now += 5.0
            for one in self.kept:
                move = next_move(one.attempt, self._look(one, "truth"), RULES, self.now)
                if not isinstance(move, TakeGpus) or self._may_take(one):
                    one.attempt = after(one.attempt, move, self.now)
                    self._tell(one, move)
                    one.attempt = heard(one.attempt, move, self.now)
        assert not any(one.is_live or one.truth.alive for one in self.kept)


TestLyingEngine = LyingEngine.TestCase
TestLyingEngine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_ends_is_hastiest_and_gpus_are_taken_in_turns() -> None:
    stop, end = Stop(StopReason.PREEMPTED), End(Outcome.SUCCEEDED)
    moves = [(1, TakeGpus()), (2, Launch()), (3, Wait()), (4, stop), (5, TakeGpus()), (6, end)]
    orders = [[name for name, _ in by_haste(moves, turn=turn)] for turn in range(3)]
    assert orders == [[4, 6, 2, 1, 5], [4, 6, 2, 5, 1], [4, 6, 2, 1, 5]]
    assert by_haste([(1, Wait())], turn=7) == []
