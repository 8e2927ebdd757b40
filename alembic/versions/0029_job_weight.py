"""job_weight: how much a job counts beside others"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0029'
down_revision = '0028'
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch: SQLite would recreate the table and drop the one that events and allocations
    # of jobs refer to.
    op.add_column('jobs', sa.Column('weight', sa.Float(), nullable=False, server_default='1'))


def downgrade() -> None:
    op.drop_column('jobs', 'weight')
