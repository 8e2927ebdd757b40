"""finish-time fairness of ended jobs, why they waited, what was believed of them; shares by day"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None

OPEN = sa.text("state IN ('queued', 'running')")
ENDED = sa.text('finished_seconds IS NOT NULL')


def upgrade() -> None:
    op.create_table('job_fairness',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('finished_seconds', sa.Float(), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('rule', sa.String(40), nullable=True),
    sa.Column('formula_version', sa.Integer(), nullable=True),
    sa.Column('rho', sa.Float(), nullable=True),
    sa.Column('jct_seconds', sa.Float(), nullable=True),
    sa.Column('contention', sa.Float(), nullable=True),
    sa.Column('isolated_seconds', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('shape', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('why', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('reason', sa.String(40), nullable=True),
    sa.Column('detail', sa.String(500), nullable=True),
    sa.Column('operation_id', sa.String(40), nullable=True),
    sa.Column('cancel_requested', sa.Boolean(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('heartbeat_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('compute_seconds', sa.Float(), nullable=True),
    *(foreign('job_fairness', *column) for column in (('job_id', 'jobs'), ('cluster_id', 'clusters'), ('tenant_id', 'tenants'), ('operation_id', 'operations'))),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_job_fairness'))
    )
    op.create_index('ix_job_fairness_cluster_finished', 'job_fairness', ['cluster_id', 'finished_seconds'])
    op.create_index('ix_job_fairness_operation', 'job_fairness', ['operation_id'])
    op.create_index('ix_job_fairness_open', 'job_fairness', ['finished_seconds'], sqlite_where=OPEN, postgresql_where=OPEN)
    op.create_table('job_wait_reasons',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('code', sa.String(64), nullable=False),
    foreign('job_wait_reasons', 'job_id', 'jobs'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_wait_reasons'))
    )
    op.create_index('ix_job_wait_reasons_job', 'job_wait_reasons', ['job_id', 'id'])
    op.create_table('ended_beliefs',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('samples', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('gradients', sa.JSON(none_as_null=True), nullable=True),
    foreign('ended_beliefs', 'job_id', 'jobs'),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_ended_beliefs'))
    )
    op.create_table('share_days',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('capacity_gpu_seconds', sa.Float(), nullable=False),
    sa.Column('tenants', sa.JSON(none_as_null=True), nullable=False),
    foreign('share_days', 'cluster_id', 'clusters'),
    sa.PrimaryKeyConstraint('cluster_id', 'day', name=op.f('pk_share_days'))
    )
    op.create_index('ix_jobs_cluster_finished', 'jobs', ['cluster_id', 'finished_seconds'], sqlite_where=ENDED, postgresql_where=ENDED)
    # Jobs that ended before: what was believed of simulated ones is gone, and they are left out.
    op.execute(
        'INSERT INTO job_fairness (job_id, cluster_id, tenant_id, finished_seconds, state, cancel_requested) '
        "SELECT id, cluster_id, tenant_id, finished_seconds, 'queued', false FROM jobs WHERE finished_seconds IS NOT NULL"
    )


def downgrade() -> None:
    op.drop_index('ix_jobs_cluster_finished', 'jobs')
    for table in ('share_days', 'ended_beliefs', 'job_wait_reasons', 'job_fairness'):
        op.drop_table(table)


def foreign(table, column, other):
    return sa.ForeignKeyConstraint([column], [f'{other}.id'], name=op.f(f'fk_{table}_{column}'))
