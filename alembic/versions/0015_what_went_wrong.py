"""engines that do not answer, checkpoints that fail, and batches that no GPU had room for"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('clusters', sa.Column('fault', sa.String(1000), nullable=True))
    op.add_column('attempts', sa.Column('trouble', sa.String(500), nullable=True))
    op.create_table('job_memory',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('out_of_memory_at', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_memory_job_id')),
    sa.PrimaryKeyConstraint('job_id', 'gpu_type', name=op.f('pk_job_memory'))
    )


def downgrade() -> None:
    op.drop_table('job_memory')
    op.drop_column('attempts', 'trouble')
    op.drop_column('clusters', 'fault')
