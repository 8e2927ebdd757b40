"""simulation_runs: what each job held and achieved over time"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0042'
down_revision = '0041'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('simulation_runs', sa.Column('series', sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column('simulation_runs', 'series')
