"""sweeps"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('sweeps',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('request', sa.LargeBinary(), nullable=False),
    sa.Column('operation_id', sa.String(40), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['operation_id'], ['operations.id'], name=op.f('fk_sweeps_operation_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_sweeps_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_sweeps_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_sweeps'))
    )
    with op.batch_alter_table('sweeps', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_sweeps_operation_id'), ['operation_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_sweeps_owner_id'), ['owner_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_sweeps_tenant_id'), ['tenant_id'], unique=False)

    op.create_table('sweep_points',
    sa.Column('key', sa.String(64), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('figures', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('error', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('heartbeat_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_sweep_points'))
    )
    with op.batch_alter_table('sweep_points', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_sweep_points_state'), ['state'], unique=False)

    op.create_table('sweep_members',
    sa.Column('sweep_id', sa.String(40), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('point_key', sa.String(64), nullable=False),
    sa.Column('settings', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('seed', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['point_key'], ['sweep_points.key'], name=op.f('fk_sweep_members_point_key')),
    sa.ForeignKeyConstraint(['sweep_id'], ['sweeps.id'], name=op.f('fk_sweep_members_sweep_id')),
    sa.PrimaryKeyConstraint('sweep_id', 'position', name=op.f('pk_sweep_members'))
    )
    with op.batch_alter_table('sweep_members', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_sweep_members_point_key'), ['point_key'], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('sweep_members', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_sweep_members_point_key'))

    op.drop_table('sweep_members')
    with op.batch_alter_table('sweep_points', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_sweep_points_state'))

    op.drop_table('sweep_points')
    with op.batch_alter_table('sweeps', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_sweeps_tenant_id'))
        batch_op.drop_index(batch_op.f('ix_sweeps_owner_id'))
        batch_op.drop_index(batch_op.f('ix_sweeps_operation_id'))

    op.drop_table('sweeps')
