"""clusters: how much jobs that share a GPU slow each other, before any was measured"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0038'
down_revision = '0037'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('clusters', sa.Column('interference', sa.String(300), nullable=True))


def downgrade() -> None:
    op.drop_column('clusters', 'interference')
