"""the boot clock of the cluster-time anchor; a row per job of the simulated executor."""

from __future__ import annotations

import json
import zlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None

STATES = sa.table('cluster_states', sa.column('cluster_id', sa.String), sa.column('executor_state', sa.LargeBinary))
JOBS = sa.table('executor_jobs', sa.column('job_id', sa.String), sa.column('cluster_id', sa.String), sa.column('standing', sa.Text))
SAMPLES = sa.table('executor_samples', sa.column('job_id', sa.String), sa.column('cluster_id', sa.String), sa.column('samples', sa.Text))


def upgrade() -> None:
    op.add_column('clusters', sa.Column('anchor_boot', sa.String(40), nullable=True))
    op.add_column('clusters', sa.Column('anchor_boot_seconds', sa.Float(), nullable=True))
    for table, text in (('executor_jobs', 'standing'), ('executor_samples', 'samples')):
        op.create_table(table,
        sa.Column('job_id', sa.String(40), nullable=False),
        sa.Column('cluster_id', sa.String(40), nullable=False),
        sa.Column(text, sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f(f'fk_{table}_cluster_id')),
        sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f(f'fk_{table}_job_id')),
        sa.PrimaryKeyConstraint('job_id', name=op.f(f'pk_{table}'))
        )
        op.create_index(op.f(f'ix_{table}_cluster_id'), table, ['cluster_id'], unique=False)
    for cluster_id, state in _states():
        _write(cluster_id, {'nodes': state['nodes'], 'now': state['executor']['now']})
        applied = state['executor']['applied']
        for job_id, job in state['executor']['jobs'].items():
            samples = job.pop('samples')
            standing = job | {'applied_round': applied.get(job_id, -1)}
            op.execute(JOBS.insert().values(job_id=job_id, cluster_id=cluster_id, standing=json.dumps(standing)))
            op.execute(SAMPLES.insert().values(job_id=job_id, cluster_id=cluster_id, samples=json.dumps(samples)))


def downgrade() -> None:
    bind = op.get_bind()
    for cluster_id, state in _states():
        samples = dict(bind.execute(sa.select(SAMPLES.c.job_id, SAMPLES.c.samples).where(SAMPLES.c.cluster_id == cluster_id)).all())
        rows = bind.execute(sa.select(JOBS.c.job_id, JOBS.c.standing).where(JOBS.c.cluster_id == cluster_id)).all()
        jobs = {job_id: json.loads(standing) | {'samples': json.loads(samples[job_id])} for job_id, standing in rows}
        applied = {job_id: number for job_id, job in jobs.items() if (number := job.pop('applied_round')) >= 0}
        _write(cluster_id, {'nodes': state['nodes'], 'executor': {'now': state['now'], 'applied': applied, 'jobs': jobs}})
    for table in ('executor_samples', 'executor_jobs'):
        op.drop_index(op.f(f'ix_{table}_cluster_id'), table_name=table)
        op.drop_table(table)
    op.drop_column('clusters', 'anchor_boot_seconds')
    op.drop_column('clusters', 'anchor_boot')


def _states() -> list[tuple[str, dict[str, Any]]]:
    rows = op.get_bind().execute(sa.select(STATES.c.cluster_id, STATES.c.executor_state).where(STATES.c.executor_state.is_not(None))).all()
    return [(cluster_id, json.loads(zlib.decompress(data))) for cluster_id, data in rows]


def _write(cluster_id: str, state: dict[str, Any]) -> None:
    packed = zlib.compress(json.dumps(state).encode())
    op.execute(STATES.update().where(STATES.c.cluster_id == cluster_id).values(executor_state=packed))
