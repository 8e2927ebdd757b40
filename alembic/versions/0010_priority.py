"""priority of jobs"""

import sqlalchemy as sa

from alembic import op

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade():
    # Not in a batch: SQLite would recreate the table and drop the one that events and allocations
    # of jobs refer to.
    op.add_column('jobs', sa.Column('priority', sa.Integer(), nullable=False, server_default='0'))


def downgrade():
    op.drop_column('jobs', 'priority')
