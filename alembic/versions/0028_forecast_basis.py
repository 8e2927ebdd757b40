"""forecast_basis: what the end of a job is drawn from, and from how many ended jobs"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0028'
down_revision = '0027'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('job_forecasts') as batch_op:
        batch_op.add_column(sa.Column('basis', sa.String(40), nullable=False, server_default='work'))
        batch_op.add_column(sa.Column('precedents', sa.Integer(), nullable=False, server_default='0'))


def downgrade() -> None:
    with op.batch_alter_table('job_forecasts') as batch_op:
        batch_op.drop_column('precedents')
        batch_op.drop_column('basis')
