"""measurements: who measured them, where they were taken from, and their licence"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0043'
down_revision = '0042'
branch_labels = None
depends_on = None

COLUMNS = {'source': 200, 'url': 500, 'licence': 200}


def upgrade() -> None:
    for name, length in COLUMNS.items():
        op.add_column('measurements', sa.Column(name, sa.String(length), nullable=True))


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column('measurements', name)
