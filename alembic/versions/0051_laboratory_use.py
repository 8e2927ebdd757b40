"""CPU seconds of work that tenants ask for"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('laboratory_use',
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('hour', sa.DateTime(timezone=True), nullable=False),
    sa.Column('cpu_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(
        ['tenant_id'], ['tenants.id'], name=op.f('fk_laboratory_use_tenant_id')
    ),
    sa.PrimaryKeyConstraint('tenant_id', 'kind', 'hour', name=op.f('pk_laboratory_use'))
    )
    with op.batch_alter_table('operations', schema=None) as batch_op:
        batch_op.add_column(
            sa.Column('cpu_seconds', sa.Float(), nullable=False, server_default='0')
        )


def downgrade() -> None:
    with op.batch_alter_table('operations', schema=None) as batch_op:
        batch_op.drop_column('cpu_seconds')
    op.drop_table('laboratory_use')
