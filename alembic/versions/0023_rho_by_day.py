"""rho of a day's ended jobs, summed up by tenant"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0023'
down_revision = '0022'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('rho_days',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('jobs', sa.Integer(), nullable=False),
    sa.Column('micros', sa.BigInteger(), nullable=False),
    sa.Column('unfair', sa.Integer(), nullable=False),
    sa.Column('worst', sa.Float(), nullable=False),
    sa.Column('sketch', sa.LargeBinary(), nullable=False),
    foreign('rho_days', 'cluster_id', 'clusters'),
    foreign('rho_days', 'tenant_id', 'tenants'),
    sa.PrimaryKeyConstraint('cluster_id', 'day', 'tenant_id', name=op.f('pk_rho_days'))
    )
    op.create_table('ended_days',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('counts', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('succeeded', sa.JSON(none_as_null=True), nullable=False),
    foreign('ended_days', 'cluster_id', 'clusters'),
    sa.PrimaryKeyConstraint('cluster_id', 'day', name=op.f('pk_ended_days'))
    )


def downgrade() -> None:
    op.drop_table('ended_days')
    op.drop_table('rho_days')


def foreign(table, column, other):
    return sa.ForeignKeyConstraint([column], [f'{other}.id'], name=op.f(f'fk_{table}_{column}'))
