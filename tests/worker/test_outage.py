"""Outages that are rehearsed: `python -m worker.outage CLUSTER NODE down|up`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from training_samples import TrainingCluster

from backend.database import Database
from backend.settings import Settings
from maat.vocabulary import AttemptState, Outcome
from worker import outage


@pytest.fixture
def cluster(database: Database, database_url: str, tmp_path: Path) -> Iterator[TrainingCluster]:
    settings = Settings(
        _env_file=None,
        data_dir=tmp_path / "data",
        database_url=database_url,
        allow_commands=True,
    )
    found = TrainingCluster(database, settings, tmp_path)
    yield found
    found.close()


def test_what_runs_on_a_node_dies_with_it_and_it_is_used_again_when_it_is_back(
    cluster: TrainingCluster,
) -> None:
    job_id = cluster.submit("/bin/sleep", "600", gpu_count=4, gpu_types=["t4"])
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    (node,) = cluster.attempts(job_id)[0].gpus_by_node
    assert outage.main((cluster.cluster_id, node, "down"), cluster.settings) == 0
    cluster.look_until(lambda: cluster.outcomes(job_id) == [Outcome.LOST])
    assert [name for name, fault in cluster.faults().items() if fault] == [node]
    assert outage.main((cluster.cluster_id, node, "up"), cluster.settings) == 0
    cluster.look()
    assert not any(cluster.faults().values())


@pytest.mark.parametrize(
    ("named", "node", "state", "told"),
    [
        ("nowhere", "t4-0", "down", "no cluster of executor local"),
        (None, "h100-0", "down", "is no node of"),
        (None, "t4-0", "sideways", "usage:"),
    ],
)
def test_what_cannot_be_rehearsed_is_told(
    cluster: TrainingCluster,
    capsys: pytest.CaptureFixture[str],
    named: str | None,
    node: str,
    state: str,
    told: str,
) -> None:
    assert outage.main((named or cluster.cluster_id, node, state), cluster.settings) == 2
    assert told in capsys.readouterr().err
