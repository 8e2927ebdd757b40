"""Live rounds under quotas: each round takes those of its moment, and tenants by their names."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import pytest
from live_samples import job, make_cluster, make_owner, set_time, submit
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.database import Database
from backend.jobs.dry_run import try_submission
from backend.jobs.remedies import RemedyFinder
from backend.marginal_values.service import marginal_values, sums_of_days
from backend.models import GpuQuota, Job, Node, Round, Tenant, User
from backend.problems import Invalid
from maat.api.jobs import JobBody
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.rounds import Decision, RoundInput
from worker.live import step as live
from worker.rehearsals.rehearsal import LiveRehearsal


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[RoundInput]:
    """What the policy of each round is shown."""
    shown: list[RoundInput] = []

    class Watching(Fifo):
        def allocate(self, round_input: RoundInput) -> Decision:
            shown.append(round_input)
            return super().allocate(round_input)

    monkeypatch.setattr(POLICIES, "build", lambda *_: Watching())
    return shown


def test_jobs_go_by_the_name_that_their_tenant_has_now(
    database: Database, seen: list[RoundInput]
) -> None:
    """Quotas and reservations find them by it, in a worker that remembers them too."""
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=2, work_scale=50.0)
    for number, name in enumerate(("tenant", "renamed", "renamed")):
        with database.session_scope() as session:
            session.exec(select(Tenant)).one().name = name
        set_time(database, cluster_id, 30.0 + 60.0 * number)
        assert live.step_cluster(database, cluster_id) == number + 1
        assert {job.spec.tenant for job in seen[-1].jobs} == {name}


# ---- a quota that changes between rounds


def submit_as(database: Database, cluster_id: str, tenant: str, **fields: Any) -> list[str]:
    """Submit a tenant's jobs, which train for long and take what they can get."""
    with database.session_scope() as session:
        home = session.exec(select(Tenant).where(Tenant.name == tenant)).first()
        if home is None:
            home = Tenant(name=tenant)
            session.add(home)
            session.flush()
            session.add(User(name=f"of {tenant}", tenant_id=home.id, role="submitter"))
        tenant_id = home.id
    made = submit(database, cluster_id, **{"work_scale": 50.0, **fields})
    with database.session_scope() as session:
        for row in session.exec(select(Job).where(col(Job.id).in_(made))):
            row.tenant_id = tenant_id
    return made


def bound(database: Database, cluster_id: str, tenant: str, gpu_type: str, **values: Any) -> None:
    """Set a quota as the service stores it."""
    with database.session_scope() as session:
        tenant_id = session.exec(select(Tenant.id).where(Tenant.name == tenant)).one()
        row = session.get(GpuQuota, (cluster_id, tenant_id, gpu_type)) or GpuQuota(
            cluster_id=cluster_id, tenant_id=tenant_id, gpu_type=gpu_type
        )
        row.guaranteed, row.ceiling = values.get("guaranteed", 0), values.get("ceiling")
        session.add(row)


def held(database: Database, cluster_id: str) -> Counter[tuple[str, str]]:
    """GPUs by tenant and type, as the rows say after a round."""
    found: Counter[tuple[str, str]] = Counter()
    with database.session_scope(writes=False) as session:
        rows = session.exec(
            select(Tenant.name, Job.gpu_type, Job.gpus)
            .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
            .where(Job.cluster_id == cluster_id, col(Job.gpu_type).is_not(None))
        )
        for tenant, gpu_type, gpus in rows:
            found[tenant, str(gpu_type)] += len(gpus or ())
    return found


def rounds(database: Database, cluster_id: str, first: int, count: int = 1) -> None:
    for number in range(first, first + count):
        set_time(database, cluster_id, 30.0 + 60.0 * (number - 1))
        assert live.step_cluster(database, cluster_id) == number


@pytest.mark.both_databases
@pytest.mark.parametrize("policy", ["sia", "las"])
def test_a_quota_that_changes_between_rounds_is_kept_from_the_next_one_on(
    database: Database, policy: str
) -> None:
    cluster_id = make_cluster(database, policy=policy)
    make_owner(database)
    some = {"gpu_types": ["a100"], "gpu_count": 2, "min_gpus": 1, "max_gpus": 8}
    submit_as(database, cluster_id, "red", count=6, **some)
    rounds(database, cluster_id, 1, 4)
    assert held(database, cluster_id)["red", "a100"] == 8

    bound(database, cluster_id, "red", "a100", ceiling=4)
    rounds(database, cluster_id, 5)
    assert held(database, cluster_id)["red", "a100"] == 4

    bound(database, cluster_id, "red", "a100", ceiling=6)
    (waiting,) = submit_as(database, cluster_id, "blue", **some)
    bound(database, cluster_id, "blue", "a100", guaranteed=2)
    rounds(database, cluster_id, 6, 4)
    after = held(database, cluster_id)
    assert after["red", "a100"] <= 6
    assert after["blue", "a100"] >= 2, job(database, waiting).reason_code


def test_a_ceiling_that_falls_below_what_a_job_needs_is_told_as_its_reason(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    make_owner(database)
    (big,) = submit_as(database, cluster_id, "red", min_gpus=4, gpu_types=["a100"])
    bound(database, cluster_id, "red", "a100", ceiling=2)
    rounds(database, cluster_id, 1, 3)
    row = job(database, big)
    assert row.gpus is None
    assert row.reason_code == "EXCEEDS_QUOTA_LIMIT"
    assert row.reason_evidence["quota_gpus"] == 2


def test_a_job_that_waits_for_its_quota_says_what_is_in_use(database: Database) -> None:
    cluster_id = make_cluster(database, policy="las")
    make_owner(database)
    rigid = {"adaptivity": "rigid", "batch_size": 512, "gpu_count": 4, "gpu_types": ["a100"]}
    made = submit_as(database, cluster_id, "red", count=2, **rigid)
    bound(database, cluster_id, "red", "a100", ceiling=4)
    rounds(database, cluster_id, 1, 4)
    waiting = [row for row in (job(database, one) for one in made) if row.gpus is None]
    assert [row.reason_code for row in waiting] == ["WAITING_QUOTA"]
    evidence = waiting[0].reason_evidence
    assert (evidence["quota_gpus"], evidence["quota_used_gpus"]) == (4, 4)


def test_rounds_go_on_when_less_is_in_service_than_is_guaranteed(database: Database) -> None:
    cluster_id = make_cluster(database)
    make_owner(database)
    some = {"gpu_types": ["a100"], "max_gpus": 8}
    for tenant in ("red", "blue"):
        submit_as(database, cluster_id, tenant, count=2, **some)
        bound(database, cluster_id, tenant, "a100", guaranteed=4, ceiling=4)
        bound(database, cluster_id, tenant, "h100", guaranteed=4)  # of a type that has gone
    rounds(database, cluster_id, 1, 6)
    assert held(database, cluster_id) == {("red", "a100"): 4, ("blue", "a100"): 4}
    with database.session_scope() as session:
        node = session.exec(select(Node).where(Node.gpu_type == "a100")).one()
        node.drained_gpus = [0, 1, 2, 3, 4]
    rounds(database, cluster_id, 7, 3)
    assert sum(held(database, cluster_id).values()) == 3


@pytest.mark.parametrize("rehearsal", [LiveRehearsal(), None])
@pytest.mark.parametrize(
    ("policy", "wanted"),
    [("fifo", {"gpu_count": 4}), ("sia", {"adaptivity": "adaptive", "min_gpus": 2})],
)
def test_who_tries_a_submission_is_told_the_quota_that_would_hold_it(
    database: Database, policy: str, wanted: dict[str, Any], rehearsal: LiveRehearsal | None
) -> None:
    cluster_id = make_cluster(database, policy=policy)
    user, tenant = make_owner(database)
    some = {"gpu_types": ["a100"], "batch_size": 512, "adaptivity": "rigid"}
    bound(database, cluster_id, "tenant", "a100", ceiling=4)
    submit(database, cluster_id, work_scale=50.0, gpu_count=4, preemptible=False, **some)
    rounds(database, cluster_id, 1, 3)
    assert held(database, cluster_id)["tenant", "a100"] == 4
    role = Role.SUBMITTER
    principal = Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])

    def told(**fields: Any) -> str:
        body = JobBody(name="next", model="cifar10", cluster_id=cluster_id, **fields)
        with database.session_scope(writes=False) as session:
            return try_submission(session, principal, body, RemedyFinder(rehearsal))["sentence"]

    begin = "It could be submitted" + (", and would wait." if rehearsal else ".")
    full = "Held by your team's quota of 4 a100: 4 in use."
    assert told(**{**some, **wanted}).startswith(f"{begin} {full}")
    assert "quota" not in told(**{**some, **wanted, "gpu_types": ["a100", "t4"]})
    bound(database, cluster_id, "tenant", "a100", ceiling=2)
    with pytest.raises(Invalid, match="hold at most 2 a100, and this one needs more"):
        told(**some, gpu_count=4)


def test_a_full_cluster_that_is_dealt_by_weights_has_prices_that_count(database: Database) -> None:
    cluster_id = make_cluster(database)
    for tenant in ("blue", "red"):
        submit_as(database, cluster_id, tenant, count=40, max_gpus=1)
        bound(database, cluster_id, tenant, "t4", guaranteed=1)
    for number in range(4):
        set_time(database, cluster_id, 30.0 + 60.0 * number)
        live.step_cluster(database, cluster_id)
    assert sum(held(database, cluster_id).values()) == 16
    with database.session_scope(writes=False) as session:
        prices = session.exec(select(Round.prices).order_by(col(Round.number))).all()
        assert all(any(name.startswith("quota:t4:") for name in found) for found in prices)
        values = marginal_values(sums_of_days(session, cluster_id, date.min, date.max))
    assert {one.gpu_type: one.positive_share for one in values} == {"t4": 1.0, "a100": 1.0}
    assert all(one.priced_hours == one.hours > 0 for one in values)
