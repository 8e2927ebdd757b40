"""cluster_forecasts: first forecasts of jobs that came since the last one have a rest of their own"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0034'
down_revision = '0033'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('cluster_forecasts') as table:
        table.add_column(sa.Column('first_at', sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column('first_seconds', sa.Float(), nullable=False, server_default='0'))
    with op.batch_alter_table('cluster_forecasts') as table:
        table.alter_column('first_seconds', server_default=None)


def downgrade() -> None:
    with op.batch_alter_table('cluster_forecasts') as table:
        table.drop_column('first_seconds')
        table.drop_column('first_at')
