"""promise_pace: a promise keeps no pace: that of a job follows from its spans"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('forecast_promises') as batch_op:
        batch_op.drop_column('pace')
        batch_op.drop_column('run_seconds')


def downgrade() -> None:
    with op.batch_alter_table('forecast_promises') as batch_op:
        batch_op.add_column(sa.Column('run_seconds', sa.Float(), nullable=True))
        batch_op.add_column(sa.Column('pace', sa.Float(), nullable=True))
