"""Tests of null in the body of a change: it takes something away, or is refused."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from maat.api.accounts import TenantChanges, UserChanges
from maat.api.clusters import ClusterChanges, NodeChanges
from maat.api.jobs import JobChanges
from maat.api.reports import ScheduleChanges
from maat.api.webhooks import WebhookChanges

TAKES_AWAY = {
    (ClusterChanges, "least_stay_seconds"),
    (ClusterChanges, "most_moves_per_hour"),
    (JobChanges, "least_stay_seconds"),
    (JobChanges, "most_moves_per_hour"),
    (JobChanges, "deadline"),
    (JobChanges, "gpu_types"),
    (JobChanges, "gpu_count"),
    (JobChanges, "max_gpus"),
    (JobChanges, "batch_size"),
    (WebhookChanges, "cluster"),
}
CHANGES: list[type[BaseModel]] = [
    ClusterChanges,
    JobChanges,
    NodeChanges,
    ScheduleChanges,
    TenantChanges,
    UserChanges,
    WebhookChanges,
]
FIELDS = [(changes, name) for changes in CHANGES for name in changes.model_fields]


@pytest.mark.parametrize(("changes", "name"), FIELDS, ids=[f"{c.__name__}.{n}" for c, n in FIELDS])
def test_null_takes_something_away_or_is_refused(changes: type[BaseModel], name: str) -> None:
    if (changes, name) in TAKES_AWAY:
        assert name in changes.model_validate({name: None}).model_fields_set
        return
    with pytest.raises(ValidationError, match="Null changes nothing: give a value") as refused:
        changes.model_validate({name: None})
    assert refused.value.errors()[0]["loc"] == (name,)
