"""Changes of a round keep every fact over the outbox."""

from __future__ import annotations

import json

import pytest

from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from worker.rounds.changes_json import changes_from_json, changes_to_json


@pytest.mark.parametrize(
    "grant",
    [
        Grant("t4", 2),
        Grant("t4", 2, node_count=1, gpus_by_node={"t4-0": 2}),
        Grant("t4", 2, share_with=("a",), shared_gpus=1, batch=BatchPlan(8, 4, 0), gpus=(1, 5)),
    ],
)
def test_a_grant_comes_back_as_it_was_stored(grant: Grant) -> None:
    change = Change("new", ChangeKind.START, None, Allocation("t4", (1, 5)), grant)
    changes = Changes(3, 60.0, (change,))
    assert changes_from_json(json.loads(json.dumps(changes_to_json(changes)))) == changes
