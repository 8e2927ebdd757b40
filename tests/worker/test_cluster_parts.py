"""A round and a rehearsal of it are made by the same policy and placer."""

from __future__ import annotations

from backend.models import Cluster
from maat.scheduling.policies.las import Las
from worker.cluster_parts import cluster_parts


def cluster(**given: object) -> Cluster:
    return Cluster(name="c", policy="las", placer="pal", round_seconds=60.0, **given)


def test_a_placer_that_marks_the_queue_has_its_policy_do_so() -> None:
    policy, placer = cluster_parts(cluster())
    plain, _ = cluster_parts(Cluster(name="c", policy="las", placer="packed", round_seconds=60.0))
    assert isinstance(policy, Las)
    assert placer.name == "pal"
    assert policy != plain


def test_what_the_row_says_of_the_policy_wins() -> None:
    asked, _ = cluster_parts(cluster())
    assert isinstance(asked, Las)
    own, _ = cluster_parts(cluster(policy_parameters={"head_of_line": "backfill"}))
    assert isinstance(own, Las)
    assert own.head_of_line != asked.head_of_line
