"""Migrations on both databases: from zero to now and back, and the same schema as the code's."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from alembic import command
from backend.database import Database
from backend.migrations import alembic_config, upgrade
from backend.models import Cluster, metadata
from backend.schema_version import head_revision, known_revisions, revision_of

pytestmark = pytest.mark.both_databases

AT = "2026-01-01 00\\:00\\:00+00\\:00"


def run(database: Database, action: str, *arguments: str) -> None:
    with database.migration() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        getattr(command, action)(config, *arguments)


def is_current(database: Database) -> bool:
    with database.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return found == ScriptDirectory.from_config(alembic_config()).get_current_head()


def test_an_empty_database_is_brought_to_the_schema_of_the_code(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    assert not is_current(database)
    with database.engine.connect() as connection:
        assert revision_of(connection) is None
    upgrade(database)
    assert is_current(database)
    with database.engine.connect() as connection:
        assert revision_of(connection) == head_revision()
    assert set(metadata.tables) <= set(sa.inspect(database.engine).get_table_names())
    run(database, "check")
    database.dispose()


def test_the_names_of_the_files_tell_the_revisions_as_alembic_does() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    by_alembic = [script.revision for script in scripts.walk_revisions()]
    assert list(known_revisions()) == by_alembic[::-1]


def test_migrating_twice_changes_nothing(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database)
    upgrade(database)
    assert is_current(database)
    database.dispose()


def test_jobs_that_were_there_before_kinds_of_work_are_training(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database, "0002")
    at = AT
    rows = (
        f"INSERT INTO tenants VALUES ('t', 'default', '{at}')",
        "INSERT INTO users (id, name, tenant_id, role, active) "
        "VALUES ('u', 'ann', 't', 'cluster_admin', true)",
        cluster_row("c", placer="packed"),
        "INSERT INTO jobs (id, cluster_id, name, owner_id, tenant_id, model, adaptivity, "
        "min_gpus, preemptible, work_scale, state, submitted_seconds, progress, remaining_work, "
        "gpu_seconds, restarts, reason_code, reason_evidence, cancel_requested, version, "
        "created_at) VALUES ('j', 'c', 'old', 'u', 't', 'bert', 'adaptive', "
        "1, true, 1, 'running', 0, 0, 1, "
        f"0, 0, 'GRANTED', '{{}}', false, 1, '{at}')",
        "INSERT INTO job_events (id, job_id, cluster_id, cluster_seconds, kind, data) "
        "VALUES (1, 'j', 'c', 0, 'state', '{}')",
    )
    with database.engine.begin() as connection:
        for row in rows:
            connection.execute(sa.text(row))
    upgrade(database)
    with database.engine.connect() as connection:
        found = connection.execute(
            sa.text("SELECT workload_kind, promised_seconds FROM jobs")
        ).all()
        assert [tuple(row) for row in found] == [("training", None)]
        assert connection.execute(sa.text("SELECT count(*) FROM job_events")).scalar() == 1
    run(database, "downgrade", "0002")
    upgrade(database)
    database.dispose()


def test_clusters_whose_placer_let_jobs_keep_their_gpus_keep_such_a_placer(
    empty_database_url: str,
) -> None:
    database = Database(empty_database_url)
    upgrade(database, "0003")
    given = {
        "default": ("packed", {}),
        "told": ("packed", {"sticky": True}),
        "again": ("packed", {"sticky": False}),
        "sia": ("whole-node", {}),
    }
    with database.engine.begin() as connection:
        for name, (placer, parameters) in given.items():
            connection.execute(
                sa.text(
                    cluster_row(
                        name,
                        placer=placer,
                        placer_parameters=json.dumps(parameters).replace(":", "\\:"),
                    )
                )
            )
    upgrade(database)
    assert placers(database) == {
        "default": ("packed-sticky", {}),
        "told": ("packed-sticky", {}),
        "again": ("packed", {}),
        "sia": ("whole-node", {}),
    }
    run(database, "downgrade", "0003")
    assert placers(database) == {**given, "told": ("packed", {})}
    upgrade(database)
    database.dispose()


def test_clusters_lose_the_rounds_among_their_policys_parameters(empty_database_url: str) -> None:
    """They had no effect: the cluster's own interval decides."""
    database = Database(empty_database_url)
    upgrade(database, "0003")
    with database.engine.begin() as connection:
        for name in ("with", "without"):
            connection.execute(sa.text(cluster_row(name, placer="whole-node")))
    upgrade(database, "0010")
    with database.engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE clusters SET policy_parameters = :given WHERE id = 'with'"),
            {"given": json.dumps({"p": -1.0, "round_seconds": 30.0})},
        )
    upgrade(database)
    with database.engine.connect() as connection:
        rows = connection.execute(
            sa.text("SELECT id, policy_parameters, round_seconds FROM clusters ORDER BY id")
        ).all()
    found = [
        (row[0], json.loads(row[1]) if isinstance(row[1], str) else row[1], row[2]) for row in rows
    ]
    assert found == [("with", {"p": -1.0}, 60), ("without", {}, 60)]
    database.dispose()


def test_samples_that_were_there_before_beliefs_are_believed(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database, "0012")
    rows = (
        f"INSERT INTO tenants VALUES ('t', 'default', '{AT}')",
        "INSERT INTO users (id, name, tenant_id, role, active) "
        "VALUES ('u', 'ann', 't', 'cluster_admin', true)",
        cluster_row("c", placer="packed"),
        "INSERT INTO jobs (id, cluster_id, name, owner_id, tenant_id, model, adaptivity, min_gpus, "
        "preemptible, work_scale, state, submitted_seconds, progress, remaining_work, gpu_seconds, "
        "restarts, reason_code, reason_evidence, cancel_requested, version, created_at, "
        "workload_kind, priority) VALUES ('j', 'c', 'j', 'u', 't', 'm', 'adaptive', 1, true, 1, "
        f"'running', 0, 0, 1, 0, 0, 'PINNED', '{{}}', false, 1, '{AT}', 'training', 0)",
        "INSERT INTO attempts (id, job_id, cluster_id, number, round_number, state, reason, "
        "reports, gpu_type, gpus_by_node, gpu_count, plan_number, launched, ordered_seconds, "
        "stop_told, report_sequence, finished) VALUES ('a', 'j', 'c', 1, 1, 'running', '', true, "
        "'t4', '{}', 1, 0, true, 0, false, 0, false)",
        "INSERT INTO job_commands (job_id, argv, cwd, env, stop_seconds, max_retries) "
        "VALUES ('j', '[]', '/', '{}', 1, 1)",
        "INSERT INTO job_samples (id, job_id, gpu_type, node_count, replica_count, "
        "per_gpu_batch_size, accumulation_steps, count, step_mean, step_m2, sync_mean, "
        "first_seconds, last_seconds) VALUES (1, 'j', 't4', 1, 1, 8, 0, 9, 0.25, 0, 0.05, 0, 0)",
    )
    with database.engine.begin() as connection:
        for row in rows:
            connection.execute(sa.text(row))
    upgrade(database, "0014")
    believed = "SELECT believed_step, believed_sync, believed_weight FROM job_samples"
    with database.engine.connect() as connection:
        assert connection.execute(sa.text(believed)).one() == (0.25, 0.05, 1.0)
        assert connection.execute(sa.text("SELECT kind FROM attempts")).scalar_one() == "train"
        assert connection.execute(sa.text("SELECT profile FROM job_commands")).scalar_one()
    run(database, "downgrade", "0012")
    with database.engine.connect() as connection:
        assert connection.execute(sa.text("SELECT step_mean FROM job_samples")).scalar_one() == 0.25
    upgrade(database)
    database.dispose()


def test_the_first_day_of_a_cluster_loses_the_gpus_from_before_it(
    empty_database_url: str,
) -> None:
    database = Database(empty_database_url)
    first, later = "2026-03-02", "2026-03-03"
    capacity = "INSERT INTO capacity_days VALUES"
    shares = "INSERT INTO share_days (cluster_id, day, capacity_gpu_seconds, tenants) VALUES"
    clusters = (
        cluster_row("c", placer="packed"),
        cluster_row("unsummed", placer="packed"),
        f"UPDATE clusters SET epoch = '{first} 15\\:00\\:00+00\\:00'",
    )
    days = (
        f"{capacity} ('c', '{first}', 'a100', {8 * 9 * 3_600_000}, 0, 0)",
        f"{capacity} ('c', '{first}', 't4', {4 * 9 * 3_600_000}, 0, 0)",
        f"{capacity} ('c', '{later}', 't4', 1000, 0, 0)",
        *(
            f"{shares} ('{name}', '{day}', {12 * 86_400}, '{{}}')"
            for name, day in (("c", first), ("c", later), ("unsummed", first))
        ),
    )
    for revision, rows in (("0003", clusters), ("0032", days)):
        upgrade(database, revision)
        with database.engine.begin() as connection:
            for row in rows:
                connection.execute(sa.text(row))
    upgrade(database)
    with database.engine.connect() as connection:
        found = connection.execute(
            sa.text("SELECT cluster_id, capacity_gpu_seconds FROM share_days ORDER BY 1, day")
        ).all()
    day = 12.0 * 86_400
    assert [tuple(row) for row in found] == [("c", 12.0 * 9 * 3600), ("c", day), ("unsummed", day)]
    database.dispose()


def test_clusters_from_before_have_executors_without_parameters(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database, "0012")
    with database.engine.begin() as connection:
        connection.execute(sa.text(cluster_row("c", placer="whole-node")))
    upgrade(database)
    with database.session_scope(writes=False) as session:
        assert session.get_one(Cluster, "c").executor_parameters == {}
    run(database, "downgrade", "0012")
    with database.engine.connect() as connection:
        assert connection.execute(sa.text("SELECT name FROM clusters")).scalar() == "c"
    upgrade(database)
    database.dispose()


def placers(database: Database) -> dict[str, tuple[str, object]]:
    with database.engine.connect() as connection:
        rows = connection.execute(
            sa.text("SELECT id, placer, placer_parameters FROM clusters")
        ).all()
    return {
        row[0]: (row[1], json.loads(row[2]) if isinstance(row[2], str) else row[2]) for row in rows
    }


def cluster_row(cluster_id: str, *, placer: str, placer_parameters: str = "{}") -> str:
    """A cluster as it was written before kinds of work."""
    return (
        "INSERT INTO clusters (id, name, policy, policy_parameters, placer, placer_parameters, "
        "round_seconds, speed, epoch, anchor_wall, anchor_seconds, paused, executor, keep_rounds, "
        "next_round_number, fencing, version, created_at) "
        f"VALUES ('{cluster_id}', '{cluster_id}', 'sia', '{{}}', '{placer}', "
        f"'{placer_parameters}', 60, 1, '{AT}', '{AT}', 0, false, 'simulated', 10, 1, 0, 1, "
        f"'{AT}')"
    )


def test_every_migration_can_be_taken_back(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database)
    run(database, "downgrade", "base")
    assert set(sa.inspect(database.engine).get_table_names()) <= {"alembic_version"}
    upgrade(database)
    run(database, "check")
    database.dispose()


def test_there_is_one_line_of_migrations() -> None:
    assert len(ScriptDirectory.from_config(alembic_config()).get_heads()) == 1
