"""forecasts: of every job, promises that are kept, and what-if requests"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0026'
down_revision = '0025'
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('cluster_forecasts',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('detail', sa.String(500), nullable=True),
    sa.Column('round_number', sa.Integer(), nullable=False),
    sa.Column('made_seconds', sa.Float(), nullable=True),
    sa.Column('draws', sa.Integer(), nullable=False),
    sa.Column('compute_seconds', sa.Float(), nullable=False),
    *(sa.Column(f'{name}_at', sa.DateTime(timezone=True), nullable=True)
      for name in ('started', 'heartbeat', 'finished')),
    foreign('cluster_forecasts', 'cluster_id', 'clusters'),
    sa.PrimaryKeyConstraint('cluster_id', name=op.f('pk_cluster_forecasts'))
    )
    op.create_table('job_forecasts',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('round_number', sa.Integer(), nullable=False),
    sa.Column('made_seconds', sa.Float(), nullable=False),
    sa.Column('draws', sa.Integer(), nullable=False),
    sa.Column('holds_gpus', sa.Boolean(), nullable=False),
    *quantiles(),
    sa.Column('spans', sa.JSON(none_as_null=True), nullable=False),
    foreign('job_forecasts', 'job_id', 'jobs'),
    foreign('job_forecasts', 'cluster_id', 'clusters'),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_job_forecasts'))
    )
    op.create_index(op.f('ix_job_forecasts_cluster_id'), 'job_forecasts', ['cluster_id'])
    op.create_table('forecast_promises',
    sa.Column('id', BIG, nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('made_seconds', sa.Float(), nullable=False),
    sa.Column('holds_gpus', sa.Boolean(), nullable=False),
    *quantiles(),
    sa.Column('run_seconds', sa.Float(), nullable=True),
    sa.Column('pace', sa.Float(), nullable=True),
    foreign('forecast_promises', 'job_id', 'jobs'),
    foreign('forecast_promises', 'cluster_id', 'clusters'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_forecast_promises'))
    )
    op.create_index('ix_forecast_promises_job', 'forecast_promises', ['job_id', 'id'])
    op.create_index('ix_forecast_promises_cluster', 'forecast_promises', ['cluster_id', 'made_seconds'])
    op.create_table('forecasts',
    sa.Column('id', sa.String(40), nullable=False),
    *(sa.Column(f'{name}_id', sa.String(40), nullable=False)
      for name in ('cluster', 'owner', 'tenant', 'operation')),
    sa.Column('request', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('result', sa.LargeBinary(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    foreign('forecasts', 'cluster_id', 'clusters'),
    foreign('forecasts', 'owner_id', 'users'),
    foreign('forecasts', 'tenant_id', 'tenants'),
    foreign('forecasts', 'operation_id', 'operations'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_forecasts'))
    )
    for name in ('owner_id', 'tenant_id', 'operation_id'):
        op.create_index(op.f(f'ix_forecasts_{name}'), 'forecasts', [name])


def downgrade() -> None:
    for table in ('forecasts', 'forecast_promises', 'job_forecasts', 'cluster_forecasts'):
        op.drop_table(table)


def quantiles():
    return [sa.Column(f'{what}_{q}', sa.Float(), nullable=True)
            for what in ('start', 'end') for q in ('p50', 'p90')]


def foreign(table, column, other):
    return sa.ForeignKeyConstraint([column], [f'{other}.id'], name=op.f(f'fk_{table}_{column}'))
