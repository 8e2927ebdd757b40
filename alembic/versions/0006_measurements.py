"""uploaded measurements of GPU variability and of interference."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('measurements',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('digest', sa.String(64), nullable=False),
    sa.Column('files', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('covers', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_measurements_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_measurements_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_measurements'))
    )
    op.create_index(op.f('ix_measurements_tenant_id'), 'measurements', ['tenant_id'], unique=False)
    stands = sa.text('deleted_at IS NULL')
    op.create_index('uq_measurements_tenant_id_kind_name', 'measurements', ['tenant_id', 'kind', 'name'], unique=True,
    sqlite_where=stands, postgresql_where=stands)

    op.create_table('measurement_files',
    sa.Column('measurement_id', sa.String(40), nullable=False),
    sa.Column('texts', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['measurement_id'], ['measurements.id'], name=op.f('fk_measurement_files_measurement_id')),
    sa.PrimaryKeyConstraint('measurement_id', name=op.f('pk_measurement_files'))
    )


def downgrade() -> None:
    op.drop_table('measurement_files')
    op.drop_index('uq_measurements_tenant_id_kind_name', 'measurements')
    op.drop_index(op.f('ix_measurements_tenant_id'), 'measurements')
    op.drop_table('measurements')
