"""clusters and jobs: least stay and most moves an hour"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0040'
down_revision = '0039'
branch_labels = None
depends_on = None

_TABLES = ('clusters', 'jobs')


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column('least_stay_seconds', sa.Float(), nullable=True))
        op.add_column(table, sa.Column('most_moves_per_hour', sa.Integer(), nullable=True))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, 'most_moves_per_hour')
        op.drop_column(table, 'least_stay_seconds')
