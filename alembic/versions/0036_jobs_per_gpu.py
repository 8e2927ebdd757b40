"""clusters: how many jobs may share a GPU"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0036'
down_revision = '0035'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('clusters', sa.Column('jobs_per_gpu', sa.Integer(), nullable=False, server_default='1'))


def downgrade() -> None:
    op.drop_column('clusters', 'jobs_per_gpu')
