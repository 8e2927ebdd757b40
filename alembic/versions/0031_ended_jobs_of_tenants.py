"""ended_jobs_of_tenants: how many jobs of each tenant ended on a day, and how"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0031'
down_revision = '0030'
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Housekeeping sums the days up again, from the jobs, which are kept.
    op.execute('DELETE FROM ended_days')
    with op.batch_alter_table('ended_days') as batch_op:
        batch_op.add_column(sa.Column('of_tenants', sa.JSON(none_as_null=True), nullable=False))


def downgrade() -> None:
    op.drop_column('ended_days', 'of_tenants')
