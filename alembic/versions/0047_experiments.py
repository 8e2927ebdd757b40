"""experiments"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0047'
down_revision = '0046'
branch_labels = None
depends_on = None

OWNERS = {'operation_id': 'operations', 'owner_id': 'users', 'tenant_id': 'tenants'}


def upgrade() -> None:
    op.create_table('experiments',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('request', sa.LargeBinary(), nullable=False),
    sa.Column('runs', sa.LargeBinary(), nullable=False),
    sa.Column('operation_id', sa.String(40), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    *(
        sa.ForeignKeyConstraint([column], [f'{table}.id'], name=op.f(f'fk_experiments_{column}'))
        for column, table in OWNERS.items()
    ),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_experiments'))
    )
    with op.batch_alter_table('experiments', schema=None) as batch_op:
        for column in OWNERS:
            batch_op.create_index(batch_op.f(f'ix_experiments_{column}'), [column], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('experiments', schema=None) as batch_op:
        for column in OWNERS:
            batch_op.drop_index(batch_op.f(f'ix_experiments_{column}'))

    op.drop_table('experiments')
