"""sweeps: notes on the points, as they were when the sweep was asked for"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0041'
down_revision = '0040'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sweeps', sa.Column('notes', sa.JSON(), server_default='[]', nullable=False))


def downgrade() -> None:
    op.drop_column('sweeps', 'notes')
