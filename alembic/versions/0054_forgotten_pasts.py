"""forgotten_pasts: until when forecasts forget how jobs of a model ended"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0054'
down_revision = '0053'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('forgotten_pasts',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('model', sa.String(200), nullable=False),
    sa.Column('until_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_forgotten_pasts_cluster_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_forgotten_pasts_tenant_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'tenant_id', 'model', name=op.f('pk_forgotten_pasts'))
    )


def downgrade() -> None:
    op.drop_table('forgotten_pasts')
