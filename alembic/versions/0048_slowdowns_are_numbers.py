"""sharing_samples: only numbers that can be"""

from __future__ import annotations

from alembic import op

revision = '0048'
down_revision = '0047'
branch_labels = None
depends_on = None

RULE = (
    'count >= 0 AND weight >= 0 AND weight <= 101 AND ratio >= 0.4 AND ratio <= 1001 '
    'AND ratio_m2 > -1 AND ratio_m2 < 1e12'
)
NAME = 'ck_sharing_samples_slowdown_is_ratio'


def upgrade() -> None:
    op.execute(f'DELETE FROM sharing_samples WHERE NOT ({RULE})')
    with op.batch_alter_table('sharing_samples') as batch:
        batch.create_check_constraint(op.f(NAME), RULE)


def downgrade() -> None:
    with op.batch_alter_table('sharing_samples') as batch:
        batch.drop_constraint(op.f(NAME), type_='check')
