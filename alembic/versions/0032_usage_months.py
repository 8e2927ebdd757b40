"""usage_months: the use of months, summed up from their days"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0032'
down_revision = '0031'
branch_labels = None
depends_on = None

_PARTS = ('allocated_ms', 'profile_ms', 'restart_ms', 'lost_ms', 'useful_ms', 'unmeasured_ms')


def upgrade() -> None:
    key = ('cluster_id', 'dimension', 'tenant_id', 'month', 'name', 'gpu_type')
    op.create_table('usage_months',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('dimension', sa.String(10), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('month', sa.Date(), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    *[sa.Column(name, sa.BigInteger(), nullable=False) for name in _PARTS],
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_usage_months_cluster_id')),
    sa.PrimaryKeyConstraint(*key, name=op.f('pk_usage_months')),
    sqlite_with_rowid=False
    )


def downgrade() -> None:
    op.drop_table('usage_months')
