"""quotas of tenants by cluster and GPU type, weights of tenants"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('tenants', sa.Column('weight', sa.Float(), nullable=False, server_default='1'))
    op.create_table('gpu_quotas',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('guaranteed', sa.Integer(), nullable=False),
    sa.Column('ceiling', sa.Integer(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('changed_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_gpu_quotas_cluster_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_gpu_quotas_tenant_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'tenant_id', 'gpu_type', name=op.f('pk_gpu_quotas'))
    )
    op.create_index('ix_gpu_quotas_tenant', 'gpu_quotas', ['tenant_id'])


def downgrade() -> None:
    op.drop_table('gpu_quotas')
    op.drop_column('tenants', 'weight')
