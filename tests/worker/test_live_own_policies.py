"""Live clusters under own policies, in processes of their own, that fail or are gone."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_samples import jobs_of, make_cluster, round_numbers, step_at, submit
from sqlmodel import col, select

from backend.clusters.resources import show_cluster
from backend.database import Database
from backend.models import Cluster, Round
from backend.settings import Settings
from maat.contracts.small_rounds import rigid_job, round_of
from maat.scheduling import cluster as engine
from maat.scheduling.policies import POLICIES, admitted
from worker.forecasts.reading import read
from worker.live.memory import MEMORY
from worker.own_policies import end_own_policies, run_own_policies_apart

FAIR_QUEUES = Path(__file__).parents[1] / "own_policies" / "distribution"
PATIENCE = 120.0  # a busy machine may take long for a policy that answers
FAULTS = {
    "Raises": "raised KeyError in faulty.py, line 27",
    "Hangs": "did not answer within 0.5 s, and was ended",
    "Exits": "ended the process that it ran in",
    "Leaves": "raised SystemExit in faulty.py, line 49",
    "Babbles": "returned no grants",
    "Overfills": "broke a rule of every round",
}


@pytest.fixture
def fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """While this file is there, the faulty policies fail."""
    file = tmp_path / "fault"
    monkeypatch.setenv("FAIR_QUEUES_FAULT", str(file))
    monkeypatch.setenv("PYTHONPATH", f"{FAIR_QUEUES}:{Path(__file__).parents[2]}")
    monkeypatch.syspath_prepend(str(FAIR_QUEUES))
    give_seconds(PATIENCE)
    yield file
    end_own_policies()
    POLICIES.dismiss_admitted()


def give_seconds(seconds: float) -> None:
    """Let own policies take so long from now on."""
    end_own_policies()
    run_own_policies_apart(Settings(_env_file=None, own_policy_seconds=seconds))


def last_round(database: Database, cluster_id: str) -> Round:
    with database.session_scope(writes=False) as session:
        mine = select(Round).where(Round.cluster_id == cluster_id)
        found = session.exec(mine.order_by(col(Round.number).desc())).first()
    assert found is not None
    return found


def held(database: Database, cluster_id: str) -> dict[str, object]:
    return {row.id: row.gpus for row in jobs_of(database, cluster_id) if row.gpus}


@pytest.mark.parametrize("name", FAULTS)
def test_a_round_outlives_a_policy_that_fails_and_says_why(
    database: Database, fault: Path, name: str
) -> None:
    policy = admitted(f"fair_queues.faulty:{name}")
    cluster_id = make_cluster(database, policy=policy, placer="packed")
    submit(database, cluster_id, count=3, work_scale=30.0)
    step_at(database, cluster_id, 10, 130, 250)
    before = held(database, cluster_id)
    assert len(before) == 3

    fault.touch()
    give_seconds(0.5 if name == "Hangs" else PATIENCE)
    late = submit(database, cluster_id, submitted_seconds=260.0)
    step_at(database, cluster_id, 370, 490)
    entry = last_round(database, cluster_id)
    assert held(database, cluster_id) == before
    assert (entry.status, entry.fallback, entry.objective) == ("policy-failed", True, None)
    assert entry.message.startswith(f"The policy {policy} {FAULTS[name]}")
    assert "What runs goes on, and nothing new starts" in entry.message
    assert not any(row.id in entry.message for row in jobs_of(database, cluster_id))
    reasons = {row.id: row.reason_code for row in jobs_of(database, cluster_id)}
    assert reasons[late[0]] == "POLICY_FAILED"

    MEMORY.forget(database)  # as a worker that was started again
    fault.unlink()
    give_seconds(PATIENCE)
    step_at(database, cluster_id, 610, 730)
    assert last_round(database, cluster_id).status != "policy-failed"
    assert late[0] in held(database, cluster_id)
    assert round_numbers(database, cluster_id) == list(range(1, 8))


def test_a_cluster_whose_policy_is_gone_keeps_what_runs_and_says_what_is_missing(
    database: Database, fault: Path
) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    submit(database, cluster_id, count=2, work_scale=30.0)
    step_at(database, cluster_id, 10, 70, 130)
    before = held(database, cluster_id)
    assert before

    with database.session_scope() as session:
        row = session.get_one(Cluster, cluster_id)
        row.policy, row.policy_parameters = "longest-first", {"head_of_line": "strict"}
        session.add(row)
    MEMORY.forget(database)
    step_at(database, cluster_id, 190)

    assert held(database, cluster_id) == before
    assert last_round(database, cluster_id).message.startswith(
        "The policy longest-first is missing"
    )
    with database.session_scope(writes=False) as session:
        (note,) = [
            n
            for n in show_cluster(session, session.get_one(Cluster, cluster_id))["notes"]
            if "longest-first" in n
        ]
        assert "install again what it came from, or choose another policy" in note
        reading = read(session, session.get_one(Cluster, cluster_id))
        assert reading is not None
        assert reading.present().policy.name == "longest-first"


def test_a_policy_keeps_its_process_and_gets_another_when_it_ends(fault: Path) -> None:
    """Its knobs come with each question; a process that was ended costs one answer at most."""
    name = admitted("fair_queues.functions:few_each")
    round_input = round_of(
        engine.Cluster.parse("t4=1x4"), [rigid_job("a", 3, step_seconds=0.1)], now=1.0
    )
    granted = [
        POLICIES.build(name, {"gpus": gpus}).allocate(round_input).grants["a"].gpu_count
        for gpus in (1, 3, 2)
    ]
    assert granted == [1, 3, 2]
    (process,) = children()
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert POLICIES.build(name).allocate(round_input).grants["a"].gpu_count == 2
    (another,) = children()
    assert another != process
    assert not fault.exists()


def children() -> list[int]:
    """The processes of own policies that this process has started and that live."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parts = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"worker.own_policies" in parts:
                found.append(int(entry.name))
    return found
