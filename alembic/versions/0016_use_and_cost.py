"""what jobs achieve in each span, their labels, days that were summed up, and prices"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from backend.columns import UtcDateTime

revision = '0016'
down_revision = '0015'
branch_labels = None
depends_on = None

_COUNTERS = ('processed_samples', 'gained_samples', 'lost_gpu_seconds')
_READINGS = tuple(f'{name}_{when}' for when in ('before', 'after') for name in ('processed', 'gained', 'lost'))
_PARTS = ('allocated_ms', 'profile_ms', 'restart_ms', 'lost_ms', 'useful_ms', 'unmeasured_ms')


def upgrade() -> None:
    op.add_column('jobs', sa.Column('labels', sa.JSON(none_as_null=True), nullable=False, server_default='{}'))
    for name in _COUNTERS:
        op.add_column('jobs', sa.Column(name, sa.Float(), nullable=False, server_default='0'))
    op.add_column('allocations', sa.Column('running_seconds', sa.Float(), nullable=True))
    op.add_column('allocations', sa.Column('for_profile', sa.Boolean(), nullable=False, server_default=sa.false()))
    for name in _READINGS:
        op.add_column('allocations', sa.Column(name, sa.Float(), nullable=True))
    # When jobs began to run on their GPUs was not kept: all of the span counts as used.
    op.execute(sa.text('UPDATE allocations SET running_seconds = from_seconds'))
    op.create_index('ix_allocations_ended', 'allocations', ['cluster_id', 'to_seconds'])
    for name in ('processed_samples', 'gained_samples', 'checkpoint_seconds'):
        op.add_column('attempts', sa.Column(name, sa.Float(), nullable=True))
    op.create_index('ix_attempts_ended', 'attempts', ['cluster_id', 'ended_seconds'])
    op.create_table('allocation_readings',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    *[sa.Column(name, sa.Float(), nullable=False) for name in _COUNTERS],
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_allocation_readings_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_allocation_readings_job_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'at_seconds', 'job_id', name=op.f('pk_allocation_readings'))
    )
    _create_days()
    op.create_table('gpu_prices',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('valid_from', sa.Date(), nullable=False),
    sa.Column('micros', sa.BigInteger(), nullable=False),
    sa.Column('currency', sa.String(3), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('created_at', UtcDateTime(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_gpu_prices_cluster_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_gpu_prices')),
    sa.UniqueConstraint('cluster_id', 'gpu_type', 'valid_from', name=op.f('uq_gpu_prices_cluster_id_gpu_type_valid_from'))
    )
    op.create_index('ix_gpu_prices_cluster', 'gpu_prices', ['cluster_id', 'valid_from'])


def _create_days() -> None:
    key = ('cluster_id', 'dimension', 'tenant_id', 'day', 'name')
    op.create_table('usage_days',
    *_key_columns(),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    *[sa.Column(name, sa.BigInteger(), nullable=False) for name in _PARTS],
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_usage_days_cluster_id')),
    sa.PrimaryKeyConstraint(*key, 'gpu_type', name=op.f('pk_usage_days')),
    sqlite_with_rowid=False
    )
    op.create_table('wait_days',
    *_key_columns(),
    sa.Column('jobs', sa.Integer(), nullable=False),
    sa.Column('waited_ms', sa.BigInteger(), nullable=False),
    sa.Column('longest_ms', sa.BigInteger(), nullable=False),
    sa.Column('sketch', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_wait_days_cluster_id')),
    sa.PrimaryKeyConstraint(*key, name=op.f('pk_wait_days')),
    sqlite_with_rowid=False
    )
    op.create_table('capacity_days',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    *[sa.Column(name, sa.BigInteger(), nullable=False) for name in ('capacity_ms', 'fragmented_ms', 'reserved_ms')],
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_capacity_days_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'day', 'gpu_type', name=op.f('pk_capacity_days')),
    sqlite_with_rowid=False
    )
    op.create_table('summed_days',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('summed_at', UtcDateTime(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_summed_days_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'day', name=op.f('pk_summed_days'))
    )


def _key_columns() -> list[sa.Column[str]]:
    return [
        sa.Column('cluster_id', sa.String(40), nullable=False),
        sa.Column('dimension', sa.String(10), nullable=False),
        sa.Column('tenant_id', sa.String(40), nullable=False),
        sa.Column('day', sa.Date(), nullable=False),
        sa.Column('name', sa.String(200), nullable=False),
    ]


def downgrade() -> None:
    for table in ('gpu_prices', 'summed_days', 'capacity_days', 'wait_days', 'usage_days', 'allocation_readings'):
        op.drop_table(table)
    op.drop_index('ix_attempts_ended', 'attempts')
    op.drop_index('ix_allocations_ended', 'allocations')
    for name in ('processed_samples', 'gained_samples', 'checkpoint_seconds'):
        op.drop_column('attempts', name)
    for name in (*_READINGS, 'for_profile', 'running_seconds'):
        op.drop_column('allocations', name)
    for name in ('labels', *_COUNTERS):
        op.drop_column('jobs', name)
