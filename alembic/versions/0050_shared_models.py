"""sharing_samples: by job and tenants. shared_models: whose evidence counts together

Pairs of before mixed all tenants: whose they are is not known, so they are measured again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0050'
down_revision = '0049'
branch_labels = None
depends_on = None

RULE = (
    'count >= 0 AND weight >= 0 AND weight <= 101 AND ratio >= 0.4 AND ratio <= 1001 '
    'AND ratio_m2 > -1 AND ratio_m2 < 1e12'
)
INDEX = 'ix_sharing_samples_cluster'


def upgrade() -> None:
    op.drop_table('sharing_samples')
    key = ('job_id', 'victim_batch', 'partner_tenant_id', 'partner', 'partner_batch', 'gpu_type', 'gpu_count')
    op.create_table('sharing_samples',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('victim_batch', sa.Integer(), nullable=False),
    sa.Column('partner_tenant_id', sa.String(40), nullable=False),
    sa.Column('partner', sa.String(200), nullable=False),
    sa.Column('partner_batch', sa.Integer(), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('victim', sa.String(200), nullable=False),
    *_figures(),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_sharing_samples_job_id')),
    sa.ForeignKeyConstraint(['partner_tenant_id'], ['tenants.id'], name=op.f('fk_sharing_samples_partner_tenant_id')),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_sharing_samples_cluster_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_sharing_samples_tenant_id')),
    sa.PrimaryKeyConstraint(*key, name=op.f('pk_sharing_samples'))
    )
    op.create_index(INDEX, 'sharing_samples', ['cluster_id', 'tenant_id', 'victim'])
    op.create_table('shared_models',
    sa.Column('model', sa.String(200), nullable=False),
    sa.Column('shared_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('model', name=op.f('pk_shared_models'))
    )


def downgrade() -> None:
    op.drop_table('shared_models')
    op.drop_index(INDEX, 'sharing_samples')
    op.drop_table('sharing_samples')
    key = ('cluster_id', 'victim', 'victim_batch', 'partner', 'partner_batch', 'gpu_type', 'gpu_count')
    op.create_table('sharing_samples',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('victim', sa.String(200), nullable=False),
    sa.Column('victim_batch', sa.Integer(), nullable=False),
    sa.Column('partner', sa.String(200), nullable=False),
    sa.Column('partner_batch', sa.Integer(), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    *_figures(),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_sharing_samples_cluster_id')),
    sa.PrimaryKeyConstraint(*key, name=op.f('pk_sharing_samples'))
    )


def _figures() -> list[sa.SchemaItem]:
    """Return the columns that both forms have, and what they must keep."""
    return [
        sa.Column('count', sa.Integer(), nullable=False),
        sa.Column('weight', sa.Float(), nullable=False),
        sa.Column('ratio', sa.Float(), nullable=False),
        sa.Column('ratio_m2', sa.Float(), nullable=False),
        sa.Column('updated_seconds', sa.Float(), nullable=False),
        sa.CheckConstraint(RULE, name=op.f('ck_sharing_samples_slowdown_is_ratio')),
    ]
