"""runs of a simulation side by side, on several traces"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('simulation_runs', sa.Column('trace', sa.Integer(), nullable=False, server_default='0'))
    op.add_column('simulation_runs', sa.Column('done', sa.Float(), nullable=False, server_default='0'))
    op.add_column('simulation_runs', sa.Column('heartbeat_at', sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column('simulation_runs', 'heartbeat_at')
    op.drop_column('simulation_runs', 'done')
    op.drop_column('simulation_runs', 'trace')
