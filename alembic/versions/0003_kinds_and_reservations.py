"""the workload kind of jobs; reservations of clusters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch: SQLite would recreate the table and drop the one that events and allocations
    # of jobs refer to.
    op.add_column('jobs', sa.Column('workload_kind', sa.String(40), nullable=False, server_default='training'))
    op.add_column('jobs', sa.Column('promised_seconds', sa.Float(), nullable=True))

    op.create_table('reservations',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=True),
    sa.Column('job_id', sa.String(40), nullable=True),
    sa.Column('start_seconds', sa.Float(), nullable=False),
    sa.Column('end_seconds', sa.Float(), nullable=True),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_reservations_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_reservations_job_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_reservations_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_reservations_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reservations'))
    )
    with op.batch_alter_table('reservations', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_reservations_cluster_id'), ['cluster_id'], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('reservations', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_reservations_cluster_id'))

    op.drop_table('reservations')
    op.drop_column('jobs', 'promised_seconds')
    op.drop_column('jobs', 'workload_kind')
