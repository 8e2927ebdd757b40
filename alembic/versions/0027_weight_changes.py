"""weight_changes: when a tenant's weight changed, by the time of each cluster"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0027'
down_revision = '0026'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('weight_changes',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('before', sa.Float(), nullable=False),
    sa.Column('after', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_weight_changes_cluster_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_weight_changes_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_weight_changes'))
    )
    op.create_index('ix_weight_changes_cluster', 'weight_changes', ['cluster_id', 'at_seconds'])
    op.create_index('ix_weight_changes_tenant', 'weight_changes', ['tenant_id'])


def downgrade() -> None:
    op.drop_table('weight_changes')
