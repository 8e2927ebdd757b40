"""what the executor of a cluster is told, such as Slurm's partition"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('clusters', sa.Column('executor_parameters', sa.JSON(none_as_null=True), nullable=False, server_default='{}'))


def downgrade() -> None:
    op.drop_column('clusters', 'executor_parameters')
