"""Tests of remedies for waiting jobs: with each remedy, the next real round starts the job.

They run on both databases with real policies and placers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from live_samples import job, make_cluster, make_owner, step_at, submit
from sqlmodel import select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.accounts.tenants import change_tenant
from backend.database import Database
from backend.jobs.changing import change_job
from backend.jobs.remedies import RemedyFinder, finding
from backend.jobs.remedies.finding import SOLUBLE
from backend.jobs.remedies.permitting import permitted
from backend.jobs.remedies.wishes import CODES
from backend.models import Cluster, Job, Node, Round, Tenant
from backend.occupancy.service import set_drained
from backend.settings import Settings
from maat.api.accounts import TenantChanges
from maat.api.job_answers import Remedy
from maat.api.jobs import JobChanges
from worker.rehearsals.rehearsal import LiveRehearsal


def remedies_of(
    database: Database, job_id: str, finder: RemedyFinder | None = None
) -> list[Remedy]:
    with database.session_scope(writes=False) as session:
        row = session.get_one(Job, job_id)
        number = session.get_one(Cluster, row.cluster_id).next_round_number
        return (finder or RemedyFinder(LiveRehearsal())).remedies_of(
            session, row, next_round=number
        )


def press(database: Database, job_id: str, remedy: Remedy) -> None:
    """Do what the remedy says through the services that the routes call."""
    who = admin(database)
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        if remedy["action"] == "restore-nodes":
            for node_id in remedy["targets"]:
                set_drained(session, row.cluster_id, node_id, False, None)
            return
        if remedy["action"] == "change-tenant":
            tenant = session.get_one(Tenant, row.tenant_id)
            weight = TenantChanges(weight=remedy["changes"]["weight"])
            change_tenant(session, Settings(), who, tenant.name, weight, f'"{tenant.version}"')
            return
        assert {name: getattr(row, name) for name in remedy["changes"]} == remedy["before"]
        changes = JobChanges.model_validate(remedy["changes"])
        change_job(session, who, job_id, changes, f'"{row.version}"')


def admin(database: Database) -> Principal:
    user, tenant = make_owner(database)
    role = Role.CLUSTER_ADMIN
    return Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])


def rigid(count: int, **more: Any) -> dict[str, Any]:
    return {
        "adaptivity": "rigid",
        "gpu_count": count,
        "batch_size": 512,
        "work_scale": 100.0,
        **more,
    }


def full_but_for_four(database: Database, **cluster: Any) -> tuple[str, str]:
    """Make a cluster on which rigid jobs hold all GPUs but four T4 and a rigid job of 8 waits."""
    cluster_id = make_cluster(database, **cluster)
    submit(database, cluster_id, **rigid(8, gpu_types=["a100"], preemptible=False))
    submit(database, cluster_id, **rigid(4, gpu_types=["t4"], preemptible=False))
    step_at(database, cluster_id, 30, 90)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, **rigid(8))
    step_at(database, cluster_id, 150)
    assert job(database, waiting).gpus is None
    return cluster_id, waiting


@pytest.mark.parametrize("policy", ["sia", "fifo", "srtf"])
def test_a_remedy_says_what_it_changes_and_what_the_next_round_would_give(
    database: Database, policy: str
) -> None:
    placer = "whole-node" if policy == "sia" else "packed-sticky"
    _, waiting = full_but_for_four(database, policy=policy, placer=placer)
    offered = remedies_of(database, waiting)
    assert {"lower_gpu_count", "make_adaptive"} <= {remedy["code"] for remedy in offered}
    fewer = next(remedy for remedy in offered if remedy["code"] == "lower_gpu_count")
    assert (
        fewer["sentence"]
        == "Ask for 4 GPUs instead of 8: at present, the next round would start it on 4 × t4."
    )
    assert (fewer["before"], fewer["changes"]) == ({"gpu_count": 8}, {"gpu_count": 4})


def all_a100_taken(database: Database, **wanted: Any) -> tuple[str, str]:
    """Make a cluster whose A100 are all held, and half of its T4, and a job that waits."""
    cluster_id = make_cluster(database)
    submit(database, cluster_id, **rigid(8, gpu_types=["a100"], preemptible=False))
    submit(database, cluster_id, **rigid(4, gpu_types=["t4"], preemptible=False))
    step_at(database, cluster_id, 30, 90)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, **wanted)
    step_at(database, cluster_id, 150)
    return cluster_id, waiting


def others_come_first(database: Database) -> tuple[str, str]:
    """Make a cluster on which a job waits behind one for which there are no A100."""
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    submit(database, cluster_id, **rigid(8, gpu_types=["a100"], preemptible=False))
    step_at(database, cluster_id, 30, 90)
    submit(database, cluster_id, submitted_seconds=91.0, **rigid(8, gpu_types=["a100"]))
    (waiting,) = submit(database, cluster_id, submitted_seconds=92.0, **rigid(4, gpu_types=["t4"]))
    step_at(database, cluster_id, 150)
    return cluster_id, waiting


def drain(database: Database, cluster_id: str, *names: str) -> None:
    for name in names:
        with database.session_scope() as session:
            node = session.exec(_nodes(cluster_id).where(Node.name == name)).one()
            node.drained_gpus = list(range(node.gpu_count))
            session.add(node)


def its_nodes_are_drained(database: Database) -> tuple[str, str]:
    """Make a cluster on which a job waits that needs both nodes of T4, which are drained."""
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    (waiting,) = submit(database, cluster_id, **rigid(8, gpu_types=["t4"]))
    drain(database, cluster_id, "t4-0", "t4-1")
    step_at(database, cluster_id, 30, 90, 150)
    return cluster_id, waiting


def another_tenant_weighs_more(database: Database) -> tuple[str, str]:
    """Make a cluster of two tenants: the heavier one is dealt six A100, the other two of them."""
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    pair = rigid(2, gpu_types=["a100"])
    with database.session_scope() as session:
        heavy = Tenant(name="heavy", weight=1.9)
        session.add(heavy)
        session.flush()
    ids = submit(database, cluster_id, count=4, **pair)
    with database.session_scope() as session:
        for job_id in ids[1:]:
            session.get_one(Job, job_id).tenant_id = heavy.id
    step_at(database, cluster_id, 30, 90)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, **pair)
    step_at(database, cluster_id, 150)
    return cluster_id, waiting


def a_shorter_job_holds_the_gpus(database: Database) -> tuple[str, str]:
    """Make a cluster on which a job waits for GPUs of one with less work left."""
    cluster_id = make_cluster(database, policy="srtf", placer="packed-sticky")
    submit(database, cluster_id, **rigid(8, gpu_types=["a100"]))
    step_at(database, cluster_id, 30, 90)
    longer = rigid(8, gpu_types=["a100"], work_scale=100.0)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, **longer)
    step_at(database, cluster_id, 150)
    return cluster_id, waiting


WAITS: dict[str, Callable[[Database], tuple[str, str]]] = {
    "return_nodes": its_nodes_are_drained,
    "lower_gpu_count": full_but_for_four,
    "make_adaptive": full_but_for_four,
    "lower_min_gpus": lambda database: all_a100_taken(
        database, min_gpus=8, work_scale=100.0, adaptivity="strong-scaling", batch_size=512
    ),
    "allow_more_types": lambda database: all_a100_taken(database, **rigid(4, gpu_types=["a100"])),
    "make_adaptive_on_more_types": lambda database: all_a100_taken(
        database, **rigid(8, gpu_types=["a100"])
    ),
    "raise_job_weight": a_shorter_job_holds_the_gpus,
    "raise_priority": others_come_first,
    "raise_weight": another_tenant_weighs_more,
}
"""For every kind of remedy, a cluster and a job of it that waits and that it helps."""


def test_every_kind_of_remedy_is_pressed_here() -> None:
    assert set(WAITS) == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_a_remedy_that_is_pressed_starts_the_job_in_the_next_round_as_it_says(
    database: Database, code: str
) -> None:
    cluster_id, waiting = WAITS[code](database)
    before = job(database, waiting)
    assert (before.gpus, before.reason_code in SOLUBLE) == (None, True), before.reason_code
    offered = remedies_of(database, waiting)
    remedy = next(one for one in offered if one["code"] == code)

    press(database, waiting, remedy)
    step_at(database, cluster_id, 210)

    after, start = job(database, waiting), remedy["starts_with"]
    assert start is not None
    assert after.reason_code == "GRANTED"
    assert (after.gpu_type, len(after.gpus or ())) == (start["gpu_type"], start["gpu_count"])
    assert after.submitted_seconds == before.submitted_seconds


@pytest.mark.parametrize("code", CODES)
def test_a_job_that_is_not_helped_waits_on(database: Database, code: str) -> None:
    cluster_id, waiting = WAITS[code](database)
    why = job(database, waiting).reason_code
    step_at(database, cluster_id, 210)
    assert job(database, waiting).reason_code == why


def test_the_least_weight_that_helps_is_offered_and_the_reason_then_names_it(
    database: Database,
) -> None:
    cluster_id, waiting = a_shorter_job_holds_the_gpus(database)
    (remedy,) = [one for one in remedies_of(database, waiting) if one["code"] == "raise_job_weight"]
    assert (remedy["action"], remedy["field"]) == ("change-job", "weight")
    assert (remedy["before"], remedy["changes"]) == ({"weight": 1.0}, {"weight": 2.0})
    assert remedy["sentence"] == (
        "Raise its weight to 2, at the cost of other jobs: at present, the next round would start "
        "it on 8 × a100."
    )
    press(database, waiting, remedy)
    step_at(database, cluster_id, 210)
    assert job(database, waiting).reason_evidence["weight"] == 2.0


@pytest.mark.parametrize(
    "code", ["raise_priority", "allow_more_types"], ids=["ignored by FIFO", "GPUs are pinned"]
)
def test_no_weight_is_offered_where_none_helps(database: Database, code: str) -> None:
    _, waiting = WAITS[code](database)
    codes = {one["code"] for one in remedies_of(database, waiting)}
    assert code in codes
    assert "raise_job_weight" not in codes


def test_a_weight_above_two_is_permitted_to_managers_alone(database: Database) -> None:
    _, waiting = a_shorter_job_holds_the_gpus(database)
    row, manager = job(database, waiting), admin(database)
    submitter = replace(manager, role=Role.SUBMITTER, permissions=PERMISSIONS[Role.SUBMITTER])
    (remedy,) = [one for one in remedies_of(database, waiting) if one["code"] == "raise_job_weight"]
    heavier = Remedy({**remedy, "changes": {"weight": 10.0}})
    for who, may in ((manager, [True, True]), (submitter, [True, False])):
        found = permitted(who, row, [remedy, heavier])
        assert [one["permitted"] for one in found] == may


def test_nothing_is_offered_where_no_round_would_start_the_job(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    for name, count in (("a100", 8), ("t4", 8)):
        submit(database, cluster_id, **rigid(count, gpu_types=[name], preemptible=False))
    (waiting,) = submit(database, cluster_id, submitted_seconds=1.0, **rigid(8))
    step_at(database, cluster_id, 30, 90)

    assert job(database, waiting).gpus is None
    assert remedies_of(database, waiting) == []


def test_a_rehearsal_writes_nothing(database: Database) -> None:
    _, waiting = full_but_for_four(database)
    before = _all_of(database)

    assert remedies_of(database, waiting)

    assert _all_of(database) == before


def test_rounds_are_tried_once_for_each_round_of_the_cluster_and_never_where_one_takes_too_long(
    database: Database,
) -> None:
    cluster_id, waiting = full_but_for_four(database)
    tried = Counting()
    finder = RemedyFinder(tried)
    first, second = remedies_of(database, waiting, finder), remedies_of(database, waiting, finder)
    assert first == second
    assert tried.stages == 1
    with database.session_scope() as session:
        number = session.get_one(Cluster, cluster_id).next_round_number - 1
        last = session.exec(_round(cluster_id, number)).one()
        last.policy_seconds = 20.0
        session.add(last)
    assert remedies_of(database, waiting) == []


def test_who_asks_while_another_job_is_looked_at_is_answered_without_remedies(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, waiting = full_but_for_four(database)
    monkeypatch.setattr(finding, "MOST_WAIT_SECONDS", 0.01)
    finder = RemedyFinder(LiveRehearsal())
    with finder._at_work:
        assert remedies_of(database, waiting, finder) == []
    assert remedies_of(database, waiting, finder) != []


@pytest.mark.parametrize("policy", ["fifo", "sia"])
def test_of_drained_nodes_the_fewest_are_returned_with_which_a_job_fits(
    database: Database, policy: str
) -> None:
    cluster_id = make_cluster(database, policy=policy)
    drain(database, cluster_id, "t4-0", "t4-1")
    (waiting,) = submit(database, cluster_id, **rigid(4, gpu_types=["t4"]))
    step_at(database, cluster_id, 30, 90)
    assert job(database, waiting).reason_code == "EXCEEDS_CLUSTER"
    (remedy,) = [one for one in remedies_of(database, waiting) if one["code"] == "return_nodes"]
    assert len(remedy["targets"]) == 1
    assert remedy["sentence"].startswith("Return node t4-0 to service: at present, the next round")
    press(database, waiting, remedy)
    step_at(database, cluster_id, 150)
    assert job(database, waiting).reason_code == "GRANTED"


def test_a_job_that_fits_with_a_node_back_and_then_waits_its_turn_is_told_so(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    submit(database, cluster_id, **rigid(4, gpu_types=["t4"], preemptible=False))
    step_at(database, cluster_id, 30, 90)
    with database.session_scope() as session:
        free = next(n for n in session.exec(_nodes(cluster_id)) if _is_free_t4(n, _t4s(session)))
        name = free.name
    drain(database, cluster_id, name)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, **rigid(8, gpu_types=["t4"]))
    step_at(database, cluster_id, 150)
    assert job(database, waiting).reason_code == "EXCEEDS_CLUSTER"
    (remedy,) = [one for one in remedies_of(database, waiting) if one["code"] == "return_nodes"]
    assert remedy["starts_with"] is None
    assert remedy["sentence"] == (
        f"Return node {name} to service: the cluster then has enough GPUs for it, and it waits its "
        "turn."
    )
    press(database, waiting, remedy)
    step_at(database, cluster_id, 210)
    assert job(database, waiting).reason_code not in ("EXCEEDS_CLUSTER", "GRANTED")


def test_neither_a_drained_node_nor_a_job_that_runs_is_promised(database: Database) -> None:
    cluster_id, waiting = full_but_for_four(database)
    with database.session_scope() as session:
        for node in session.exec(_nodes(cluster_id)):
            node.drained_gpus = [0, 1, 2, 3] if _is_free_t4(node, _t4s(session)) else []
            session.add(node)
    assert remedies_of(database, waiting) == []


class Counting(LiveRehearsal):
    stages = 0

    def stage(self, session: Any, job: Job) -> Any:
        self.stages += 1
        return super().stage(session, job)


def _all_of(database: Database) -> list[Any]:
    with database.session_scope(writes=False) as session:
        return [
            [row.model_dump() for row in session.exec(_every(table))]
            for table in (Job, Cluster, Round, Node)
        ]


def _every(table: Any) -> Any:
    return select(table).order_by(table.id)


def _round(cluster_id: str, number: int) -> Any:
    return select(Round).where(Round.cluster_id == cluster_id, Round.number == number)


def _nodes(cluster_id: str) -> Any:
    return select(Node).where(Node.cluster_id == cluster_id)


def _is_free_t4(node: Node, held: list[int]) -> bool:
    return node.gpu_type == "t4" and not any(0 <= gpu - node.position * 4 < 4 for gpu in held)


def _t4s(session: Any) -> list[int]:
    return [
        gpu
        for row in session.exec(select(Job).where(Job.gpu_type == "t4"))
        for gpu in row.gpus or ()
    ]
