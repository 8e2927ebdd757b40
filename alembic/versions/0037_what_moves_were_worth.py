"""allocations: the noise scale at their beginning; batch_changes: batch sizes within a span"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0037'
down_revision = '0036'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('batch_changes',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(length=40), nullable=False),
    sa.Column('cluster_id', sa.String(length=40), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('total_batch_size', sa.Integer(), nullable=False),
    sa.Column('processed_samples', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_batch_changes_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_batch_changes_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_changes'))
    )
    with op.batch_alter_table('batch_changes') as table:
        table.create_index('ix_batch_changes_cluster', ['cluster_id', 'at_seconds'], unique=False)
        table.create_index('ix_batch_changes_job', ['job_id', 'id'], unique=False)
    with op.batch_alter_table('allocations') as table:
        table.add_column(sa.Column('noise_scale', sa.Float(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table('allocations') as table:
        table.drop_column('noise_scale')
    op.drop_table('batch_changes')
