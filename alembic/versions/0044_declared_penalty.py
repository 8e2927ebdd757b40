"""job_commands: how much slower the owner says that a step is across nodes"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0044'
down_revision = '0043'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('job_commands', sa.Column('locality_penalty', sa.Float(), nullable=True))


def downgrade() -> None:
    op.drop_column('job_commands', 'locality_penalty')
