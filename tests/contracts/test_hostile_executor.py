"""Whatever an executor answers, the rounds of its cluster go on and the history stays whole.

What becomes of a job that the executor lost: it holds no GPUs from then on, is `preempted` with the
cause `lost`, and the next step hands it to the executor again, to be started again.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from contracts.sampling import sampled
from fake_executor import MISCHIEF, FakeExecutor, Mischief, World
from hypothesis import given
from hypothesis import strategies as st
from live_samples import (
    ENDED,
    jobs_of,
    make_cluster,
    round_numbers,
    set_time,
    spans_of,
    states_of,
    submit,
    waiting_messages,
)
from sqlmodel import col, select

from backend.database import Database
from backend.migrations import upgrade
from backend.models import Job, JobEvent, JobPause, Node
from maat.scheduling.events import may_follow
from maat.vocabulary import JobState
from worker.executors import EXECUTORS, ExecutorEntry
from worker.live import step as live
from worker.live.memory import MEMORY
from worker.rounds.store import SqlRoundStore

HOSTILE = "hostile"
ROUND = 60.0
ROUNDS_TO_HEAL = 20


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    database = Database(f"sqlite:///{folder / 'maat.db'}")
    upgrade(database)
    yield database
    EXECUTORS.pop(HOSTILE, None)
    database.dispose()


class Play:
    """A cluster whose executor does mischief, step by step."""

    def __init__(self, database: Database, mischief: Mischief, *, name: str) -> None:
        self.database, self.mischief, self.world = database, mischief, World()
        self.cluster_id = make_cluster(
            database, name=name, executor=HOSTILE, policy="fifo", placer="packed-sticky"
        )
        self.now, self.rounds, self.has_all_nodes = ROUND / 2, 0, True
        EXECUTORS[HOSTILE] = ExecutorEntry(
            lambda restoration: FakeExecutor(restoration, self.world, self.mischief)
        )

    def submit(self, count: int) -> None:
        submit(
            self.database,
            self.cluster_id,
            count=count,
            gpu_count=2,
            submitted_seconds=self.now,
            external_id=None,
        )

    def step(self, act: str = "") -> None:
        if act == "submit":
            self.submit(1)
        elif act == "cancel":
            self._cancel()
        elif act in ("pause", "resume"):
            self._pause(act == "pause")
        elif act == "remove a node" and self.has_all_nodes:
            self._remove_node()
        elif act == "forget":
            MEMORY.forget(self.database)
        set_time(self.database, self.cluster_id, self.now)
        if act == "die":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(SqlRoundStore, "applied", _die)
                with pytest.raises(Died):
                    live.step_cluster(self.database, self.cluster_id)
            self.rounds = len(round_numbers(self.database, self.cluster_id))
        else:
            self.rounds += 1
            assert live.step_cluster(self.database, self.cluster_id) == self.rounds
        self.now += ROUND
        self.check()

    def heal(self) -> None:
        """Play on without mischief until every job has ended, or should have."""
        self.mischief.is_over = True
        while any(row.pause_requested for row in jobs_of(self.database, self.cluster_id)):
            self._pause(False)
        self.step()
        for _ in range(ROUNDS_TO_HEAL):
            if all(row.state in ENDED for row in jobs_of(self.database, self.cluster_id)):
                return
            self.step()

    def check(self) -> None:
        numbers = round_numbers(self.database, self.cluster_id)
        assert numbers == list(range(1, self.rounds + 1))
        rows = jobs_of(self.database, self.cluster_id)
        assert max(Counter(gpu for row in rows for gpu in row.gpus or ()).values(), default=1) == 1
        for row in rows:
            states = [JobState.SUBMITTED, *states_of(self.database, row.id)]
            assert states[-1] == row.state, (states, row.state)
            assert all(may_follow(*pair) for pair in itertools.pairwise(states)), states
            self._check_spans(row)
            self._check_pauses(row)
            assert (row.finished_seconds is not None) == (row.state in ENDED)
        self._check_nothing_is_doubled()
        if self.has_all_nodes:
            self._check_gpus()

    def _check_spans(self, row: Job) -> None:
        spans = spans_of(self.database, row.id)
        assert [span.to_seconds for span in spans[:-1]].count(None) == 0
        assert bool(spans and spans[-1].to_seconds is None) == (row.gpus is not None)
        for span in spans:
            assert span.to_seconds is None or span.to_seconds >= span.from_seconds
        for before, after in itertools.pairwise(spans):
            assert before.to_seconds is not None
            assert before.to_seconds <= after.from_seconds

    def _check_pauses(self, row: Job) -> None:
        mine = select(JobPause).where(JobPause.job_id == row.id).order_by(col(JobPause.id))
        with self.database.session_scope(writes=False) as session:
            pauses = session.exec(mine).all()
        lasts = [one.to_seconds is None for one in pauses]
        assert lasts.count(True) == (row.state == JobState.PAUSED)
        assert len(pauses) == states_of(self.database, row.id).count(JobState.PAUSED)
        assert (row.paused_since_seconds is None) == (row.state != JobState.PAUSED)

    def _check_nothing_is_doubled(self) -> None:
        columns = (JobEvent.job_id, JobEvent.cluster_seconds, JobEvent.kind, JobEvent.state)
        with self.database.session_scope(writes=False) as session:
            told = session.exec(
                select(*columns).where(JobEvent.cluster_id == self.cluster_id)
            ).all()
        doubled = [event for event, count in Counter(map(tuple, told)).items() if count > 1]
        assert doubled == []

    def _check_gpus(self) -> None:
        """No GPU was held by two jobs at one time.

        Numbers mean nothing across a change of nodes.
        """
        held: dict[int, list[tuple[float, float]]] = {}
        for row in jobs_of(self.database, self.cluster_id):
            for span in spans_of(self.database, row.id):
                end = float("inf") if span.to_seconds is None else span.to_seconds
                if end > span.from_seconds:
                    for gpu in span.gpus:
                        held.setdefault(gpu, []).append((span.from_seconds, end))
        for spans in held.values():
            for before, after in itertools.pairwise(sorted(spans)):
                assert before[1] <= after[0], (before, after)

    def _cancel(self) -> None:
        with self.database.session_scope() as session:
            mine = (Job.cluster_id == self.cluster_id, col(Job.finished_seconds).is_(None))
            row = session.exec(select(Job).where(*mine).order_by(col(Job.id))).first()
            if row is not None:
                row.cancel_requested = True

    def _pause(self, pause: bool) -> None:
        """Pause the first job that is not, or resume the first that is."""
        with self.database.session_scope() as session:
            mine = (Job.cluster_id == self.cluster_id, col(Job.pause_requested).is_(not pause))
            alive = (*mine, col(Job.finished_seconds).is_(None)) if pause else mine
            row = session.exec(select(Job).where(*alive).order_by(col(Job.id))).first()
            if row is not None:
                row.pause_requested = pause

    def _remove_node(self) -> None:
        self.has_all_nodes = False
        with self.database.session_scope() as session:
            mine = (Node.cluster_id == self.cluster_id, Node.name == "t4-0")
            session.delete(session.exec(select(Node).where(*mine)).one())


class Died(Exception):
    """Stands for the end of the worker's process."""


def _die(*_: object, **__: object) -> None:
    raise Died


names = (f"hostile-{number}" for number in itertools.count())
acts = st.lists(
    st.sampled_from(("", "submit", "cancel", "forget", "die", "remove a node", "pause", "resume")),
    max_size=9,
)


@sampled(30)
@given(
    rates=st.dictionaries(st.sampled_from(MISCHIEF), st.sampled_from((0.2, 0.6)), max_size=8),
    seed=st.integers(0, 2**32),
    acts=acts,
)
def test_rounds_go_on_and_the_history_stays_whole_whatever_the_executor_answers(
    stored: Database, rates: dict[str, float], seed: int, acts: list[str]
) -> None:
    play = Play(stored, Mischief(rates, random.Random(seed)), name=next(names))
    play.submit(5)
    for act in ("", *acts):
        play.step(act)
    play.heal()
    assert {row.state for row in jobs_of(stored, play.cluster_id)} <= ENDED
    assert waiting_messages(stored, play.cluster_id) == []


@pytest.mark.parametrize("kind", MISCHIEF)
def test_rounds_go_on_while_an_executor_does_one_thing_that_it_must_not(
    stored: Database, kind: str
) -> None:
    play = Play(stored, Mischief({kind: 0.5}), name=next(names))
    play.submit(5)
    acts = ("", "", "submit", "die", "pause", "", "forget", "cancel", "", "resume", "die")
    for act in (*acts, "pause", "remove a node", ""):
        play.step(act)
    play.heal()
    assert {row.state for row in jobs_of(stored, play.cluster_id)} <= ENDED


def test_a_lost_job_is_preempted_says_why_and_is_started_again(stored: Database) -> None:
    play = Play(stored, Mischief(), name=next(names))
    play.submit(1)
    play.step()
    play.step()
    (row,) = jobs_of(stored, play.cluster_id)
    assert (row.state, row.gpus) == ("starting", [0, 1])
    play.mischief.rates = {"loses jobs": 1.0}
    play.step()
    (row,) = jobs_of(stored, play.cluster_id)
    assert (row.state, row.gpus) == ("preempted", None)
    assert causes_of(stored, row.id) == {"preempted": "lost"}
    play.mischief.is_over = True
    play.step()
    (row,) = jobs_of(stored, play.cluster_id)
    assert (row.state, row.gpus) == ("restarting", [0, 1])
    assert states_of(stored, row.id)[-2:] == [JobState.PREEMPTED, JobState.RESTARTING]
    play.heal()
    assert [row.state for row in jobs_of(stored, play.cluster_id)] == ["succeeded"]


def test_the_timeline_shows_the_gpus_that_a_job_holds_and_not_those_that_it_was_given(
    stored: Database,
) -> None:
    mischief = Mischief({"starts late": 1.0})
    play = Play(stored, mischief, name=next(names))
    play.submit(1)
    play.step()
    play.step()
    (row,) = jobs_of(stored, play.cluster_id)
    assert (row.state, row.gpus, spans_of(stored, row.id)) == ("starting", None, [])
    mischief.is_over = True
    play.step()
    (span,) = spans_of(stored, row.id)
    assert (span.gpus, span.from_seconds) == ([0, 1], pytest.approx(150.0))
    play.world.jobs[row.id].held = (("t4-1", 2), ("t4-1", 3))
    play.step()
    first, second = spans_of(stored, row.id)
    assert first.to_seconds == second.from_seconds == pytest.approx(210.0)
    assert (second.gpus, second.to_seconds) == ([6, 7], None)


def causes_of(database: Database, job_id: str) -> dict[str, str]:
    """The causes of the states that the journal concluded by itself."""
    with database.session_scope(writes=False) as session:
        events = session.exec(select(JobEvent).where(JobEvent.job_id == job_id)).all()
    return {str(event.state): event.data["cause"] for event in events if "cause" in event.data}
