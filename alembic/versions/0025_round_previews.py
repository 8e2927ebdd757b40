"""previews of rounds"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0025'
down_revision = '0024'
branch_labels = None
depends_on = None

TABLE = 'round_previews'
OTHERS = {
    'cluster_id': 'clusters',
    'owner_id': 'users',
    'tenant_id': 'tenants',
    'operation_id': 'operations',
}


def upgrade() -> None:
    op.create_table(TABLE,
    sa.Column('id', sa.String(40), nullable=False),
    *(sa.Column(name, sa.String(40), nullable=False) for name in OTHERS),
    sa.Column('cluster_version', sa.Integer(), nullable=False),
    sa.Column('request', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('wanted', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('result', sa.LargeBinary(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    *(foreign(name, other) for name, other in OTHERS.items()),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_round_previews'))
    )
    with op.batch_alter_table(TABLE, schema=None) as batch_op:
        for name in (*OTHERS, 'created_at'):
            batch_op.create_index(batch_op.f(f'ix_{TABLE}_{name}'), [name], unique=False)


def downgrade() -> None:
    op.drop_table(TABLE)


def foreign(column, other):
    return sa.ForeignKeyConstraint([column], [f'{other}.id'], name=op.f(f'fk_{TABLE}_{column}'))
