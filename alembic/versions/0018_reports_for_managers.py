"""reports for managers: what one more GPU was worth by day, reports, schedules, deliveries"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0018'
down_revision = '0017'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('marginal_value_days',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('policy', sa.String(100), nullable=False),
    sa.Column('policy_version', sa.String(40), nullable=False),
    sa.Column('placer', sa.String(100), nullable=False),
    sa.Column('first_seconds', sa.Float(), nullable=False),
    sa.Column('last_seconds', sa.Float(), nullable=False),
    sa.Column('rounds', sa.Integer(), nullable=False),
    sa.Column('seconds', sa.Float(), nullable=False),
    sa.Column('priced_seconds', sa.Float(), nullable=False),
    sa.Column('positive_seconds', sa.Float(), nullable=False),
    sa.Column('value_seconds', sa.Float(), nullable=False),
    sa.Column('used_seconds', sa.Float(), nullable=False),
    sa.Column('capacity_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_marginal_value_days_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'day', 'gpu_type', 'policy', 'policy_version', 'placer', name=op.f('pk_marginal_value_days'))
    )
    op.create_table('summed_rounds',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('through', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_summed_rounds_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', name=op.f('pk_summed_rounds'))
    )
    op.create_table('report_schedules',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=True),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('every', sa.String(40), nullable=False),
    sa.Column('hour', sa.Integer(), nullable=False),
    sa.Column('channel', sa.String(40), nullable=False),
    sa.Column('url', sa.String(2000), nullable=True),
    sa.Column('secret', sa.LargeBinary(), nullable=True),
    sa.Column('forms', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('paper', sa.String(40), nullable=False),
    sa.Column('active', sa.Boolean(), nullable=False),
    sa.Column('next_due_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_report_schedules_cluster_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_report_schedules_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_report_schedules_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_report_schedules'))
    )
    op.create_index(op.f('ix_report_schedules_cluster_id'), 'report_schedules', ['cluster_id'])
    op.create_index(op.f('ix_report_schedules_next_due_at'), 'report_schedules', ['next_due_at'])
    op.create_index(op.f('ix_report_schedules_tenant_id'), 'report_schedules', ['tenant_id'])

    op.create_table('reports',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=True),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('schedule_id', sa.String(40), nullable=True),
    sa.Column('period_name', sa.String(40), nullable=True),
    sa.Column('period_start', sa.DateTime(timezone=True), nullable=False),
    sa.Column('period_end', sa.DateTime(timezone=True), nullable=False),
    sa.Column('is_partial', sa.Boolean(), nullable=False),
    sa.Column('title', sa.String(500), nullable=False),
    sa.Column('checksum', sa.String(64), nullable=False),
    sa.Column('document', sa.LargeBinary(), nullable=False),
    sa.Column('made_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_reports_cluster_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_reports_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_reports_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reports'))
    )
    op.create_index(op.f('ix_reports_cluster_id'), 'reports', ['cluster_id'])
    op.create_index(op.f('ix_reports_made_at'), 'reports', ['made_at'])
    op.create_index(op.f('ix_reports_schedule_id'), 'reports', ['schedule_id'])
    op.create_index(op.f('ix_reports_tenant_id'), 'reports', ['tenant_id'])

    op.create_table('report_deliveries',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('schedule_id', sa.String(40), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('report_id', sa.String(40), nullable=True),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('tries', sa.Integer(), nullable=False),
    sa.Column('next_try_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('answered', sa.Integer(), nullable=True),
    sa.Column('message', sa.String(1000), nullable=False),
    sa.Column('files', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('heartbeat_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['report_id'], ['reports.id'], name=op.f('fk_report_deliveries_report_id')),
    sa.ForeignKeyConstraint(['schedule_id'], ['report_schedules.id'], name=op.f('fk_report_deliveries_schedule_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_report_deliveries')),
    sa.UniqueConstraint('schedule_id', 'due_at', name=op.f('uq_report_deliveries_schedule_id_due_at'))
    )
    op.create_index(op.f('ix_report_deliveries_report_id'), 'report_deliveries', ['report_id'])
    op.create_index(op.f('ix_report_deliveries_state'), 'report_deliveries', ['state'])

    op.add_column('rounds', sa.Column('policy_version', sa.String(40), nullable=False, server_default=''))


def downgrade() -> None:
    op.drop_column('rounds', 'policy_version')

    op.drop_index(op.f('ix_report_deliveries_state'), 'report_deliveries')
    op.drop_index(op.f('ix_report_deliveries_report_id'), 'report_deliveries')

    op.drop_table('report_deliveries')
    op.drop_index(op.f('ix_reports_tenant_id'), 'reports')
    op.drop_index(op.f('ix_reports_schedule_id'), 'reports')
    op.drop_index(op.f('ix_reports_made_at'), 'reports')
    op.drop_index(op.f('ix_reports_cluster_id'), 'reports')

    op.drop_table('reports')
    op.drop_index(op.f('ix_report_schedules_tenant_id'), 'report_schedules')
    op.drop_index(op.f('ix_report_schedules_next_due_at'), 'report_schedules')
    op.drop_index(op.f('ix_report_schedules_cluster_id'), 'report_schedules')

    op.drop_table('report_schedules')
    op.drop_table('summed_rounds')
    op.drop_table('marginal_value_days')
