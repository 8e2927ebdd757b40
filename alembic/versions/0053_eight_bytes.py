"""eight bytes for what reports may count beyond four; integers of SQLite have as many as they need"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0053'
down_revision = '0052'
branch_labels = None
depends_on = None

COLUMNS = (
    ('attempts', 'report_sequence'),
    ('attempts', 'checkpoint_step'),
    ('job_samples', 'count'),
    ('job_gradients', 'steps'),
    ('sharing_samples', 'victim_batch'),
    ('sharing_samples', 'partner_batch'),
)


def upgrade() -> None:
    if op.get_bind().dialect.name == 'postgresql':
        for table, column in COLUMNS:
            op.alter_column(table, column, type_=sa.BigInteger())


def downgrade() -> None:
    if op.get_bind().dialect.name == 'postgresql':
        for table, column in COLUMNS:
            smaller = f'LEAST({column}, 2147483647)::integer'
            op.alter_column(table, column, type_=sa.Integer(), postgresql_using=smaller)
