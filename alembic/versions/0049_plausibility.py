"""attempts: how long the reported steps took together; the least work that was named"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0049'
down_revision = '0048'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('attempts') as batch:
        batch.add_column(sa.Column('timed_since', sa.Float(), nullable=True))
        batch.add_column(sa.Column('least_total_samples', sa.Float(), nullable=True))
        batch.add_column(sa.Column('timed_steps', sa.BigInteger(), nullable=False, server_default='0'))
        batch.add_column(sa.Column('timed_seconds', sa.Float(), nullable=False, server_default='0'))


def downgrade() -> None:
    with op.batch_alter_table('attempts') as batch:
        for name in ('least_total_samples', 'timed_steps', 'timed_seconds', 'timed_since'):
            batch.drop_column(name)
