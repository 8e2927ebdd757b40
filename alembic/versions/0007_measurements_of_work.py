"""the measurements that simulations and sweeps use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('measurement_uses',
    sa.Column('operation_id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('measurement_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(200), nullable=True),
    sa.ForeignKeyConstraint(['measurement_id'], ['measurements.id'], name=op.f('fk_measurement_uses_measurement_id')),
    sa.ForeignKeyConstraint(['operation_id'], ['operations.id'], name=op.f('fk_measurement_uses_operation_id')),
    sa.PrimaryKeyConstraint('operation_id', 'kind', name=op.f('pk_measurement_uses'))
    )
    op.create_index(op.f('ix_measurement_uses_measurement_id'), 'measurement_uses', ['measurement_id'], unique=False)


def downgrade() -> None:
    op.drop_index(op.f('ix_measurement_uses_measurement_id'), 'measurement_uses')
    op.drop_table('measurement_uses')
