"""reproductions of the papers' items: what is asked for, and runs by their content"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0045'
down_revision = '0044'
branch_labels = None
depends_on = None

MOMENTS = ('heartbeat_at', 'started_at', 'finished_at')
INDEXES = {
    'paper_runs': ('state',),
    'reproductions': ('operation_id', 'owner_id', 'tenant_id'),
    'reproduced_items': ('reproduction_id',),
    'reproduced_runs': ('run_key',),
}


def upgrade() -> None:
    op.create_table('paper_runs',
    sa.Column('key', sa.String(64), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('result', sa.LargeBinary(), nullable=True),
    sa.Column('failed', sa.String(), nullable=True),
    *_moments(),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_paper_runs'))
    )
    op.create_table('reproductions',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('paper', sa.String(100), nullable=False),
    sa.Column('size', sa.String(40), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('operation_id', sa.String(40), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['operation_id'], ['operations.id'], name=op.f('fk_reproductions_operation_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_reproductions_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_reproductions_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reproductions'))
    )
    op.create_table('reproduced_items',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('reproduction_id', sa.String(40), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('item', sa.String(100), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('runs', sa.Integer(), nullable=True),
    sa.Column('result', sa.LargeBinary(), nullable=True),
    sa.Column('failed', sa.String(), nullable=True),
    *_moments(),
    sa.ForeignKeyConstraint(['reproduction_id'], ['reproductions.id'], name=op.f('fk_reproduced_items_reproduction_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reproduced_items'))
    )
    op.create_table('reproduced_runs',
    sa.Column('item_id', sa.String(40), nullable=False),
    sa.Column('run_key', sa.String(64), nullable=False),
    sa.ForeignKeyConstraint(['item_id'], ['reproduced_items.id'], name=op.f('fk_reproduced_runs_item_id')),
    sa.ForeignKeyConstraint(['run_key'], ['paper_runs.key'], name=op.f('fk_reproduced_runs_run_key')),
    sa.PrimaryKeyConstraint('item_id', 'run_key', name=op.f('pk_reproduced_runs'))
    )
    for table, columns in INDEXES.items():
        with op.batch_alter_table(table) as batch:
            for column in columns:
                batch.create_index(f'ix_{table}_{column}', [column], unique=False)


def _moments() -> list[sa.Column]:
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=True) for name in MOMENTS]


def downgrade() -> None:
    for table in ('reproduced_runs', 'reproduced_items', 'reproductions', 'paper_runs'):
        op.drop_table(table)
