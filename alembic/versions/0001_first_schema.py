"""first schema"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('clusters',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('policy', sa.String(100), nullable=False),
    sa.Column('policy_parameters', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('placer', sa.String(100), nullable=False),
    sa.Column('placer_parameters', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('round_seconds', sa.Float(), nullable=False),
    sa.Column('speed', sa.Float(), nullable=False),
    sa.Column('epoch', sa.DateTime(timezone=True), nullable=False),
    sa.Column('anchor_wall', sa.DateTime(timezone=True), nullable=False),
    sa.Column('anchor_seconds', sa.Float(), nullable=False),
    sa.Column('paused', sa.Boolean(), nullable=False),
    sa.Column('executor', sa.String(40), nullable=False),
    sa.Column('keep_rounds', sa.Integer(), nullable=False),
    sa.Column('next_round_number', sa.Integer(), nullable=False),
    sa.Column('lease_holder', sa.String(200), nullable=True),
    sa.Column('lease_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('fencing', sa.Integer(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_clusters')),
    sa.UniqueConstraint('name', name=op.f('uq_clusters_name'))
    )
    op.create_table('idempotency_keys',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('principal', sa.String(40), nullable=False),
    sa.Column('route', sa.String(200), nullable=False),
    sa.Column('key', sa.String(200), nullable=False),
    sa.Column('digest', sa.String(64), nullable=False),
    sa.Column('status', sa.Integer(), nullable=False),
    sa.Column('body', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('headers', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_idempotency_keys')),
    sa.UniqueConstraint('principal', 'route', 'key', name=op.f('uq_idempotency_keys_principal_route_key'))
    )
    with op.batch_alter_table('idempotency_keys', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_idempotency_keys_created_at'), ['created_at'], unique=False)

    op.create_table('tenants',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_tenants')),
    sa.UniqueConstraint('name', name=op.f('uq_tenants_name'))
    )
    op.create_table('cluster_states',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('round_number', sa.Integer(), nullable=False),
    sa.Column('policy_state', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('placer_state', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('executor_state', sa.LargeBinary(), nullable=True),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_cluster_states_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', name=op.f('pk_cluster_states'))
    )
    op.create_table('nodes',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('memory_gib', sa.Float(), nullable=True),
    sa.Column('drained_gpus', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_nodes_cluster_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_nodes')),
    sa.UniqueConstraint('cluster_id', 'name', name=op.f('uq_nodes_cluster_id_name')),
    sa.UniqueConstraint('cluster_id', 'position', name=op.f('uq_nodes_cluster_id_position'))
    )
    with op.batch_alter_table('nodes', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_nodes_cluster_id'), ['cluster_id'], unique=False)

    op.create_table('outbox',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('round_number', sa.Integer(), nullable=False),
    sa.Column('payload', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('applied_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_outbox_cluster_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_outbox'))
    )
    with op.batch_alter_table('outbox', schema=None) as batch_op:
        batch_op.create_index('ix_outbox_cluster', ['cluster_id', 'applied_at'], unique=False)

    op.create_table('rounds',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('active_jobs', sa.Integer(), nullable=False),
    sa.Column('running_jobs', sa.Integer(), nullable=False),
    sa.Column('pending_jobs', sa.Integer(), nullable=False),
    sa.Column('gpus_used', sa.Integer(), nullable=False),
    sa.Column('gpus_total', sa.Integer(), nullable=False),
    sa.Column('changes', sa.Integer(), nullable=False),
    sa.Column('policy', sa.String(100), nullable=False),
    sa.Column('placer', sa.String(100), nullable=False),
    sa.Column('status', sa.String(40), nullable=False),
    sa.Column('method', sa.String(100), nullable=False),
    sa.Column('objective', sa.Float(), nullable=True),
    sa.Column('bound', sa.Float(), nullable=True),
    sa.Column('gap', sa.Float(), nullable=True),
    sa.Column('fallback', sa.Boolean(), nullable=False),
    sa.Column('message', sa.String(), nullable=False),
    sa.Column('solve_seconds', sa.Float(), nullable=True),
    sa.Column('policy_seconds', sa.Float(), nullable=False),
    sa.Column('place_seconds', sa.Float(), nullable=False),
    sa.Column('prices', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('gpus_by_type', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('committed_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('record', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_rounds_cluster_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_rounds')),
    sa.UniqueConstraint('cluster_id', 'number', name=op.f('uq_rounds_cluster_id_number'))
    )
    with op.batch_alter_table('rounds', schema=None) as batch_op:
        batch_op.create_index('ix_rounds_cluster_at', ['cluster_id', 'at_seconds'], unique=False)

    op.create_table('users',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('role', sa.String(40), nullable=False),
    sa.Column('active', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_users_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_users')),
    sa.UniqueConstraint('name', name=op.f('uq_users_name'))
    )
    with op.batch_alter_table('users', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_users_tenant_id'), ['tenant_id'], unique=False)

    op.create_table('api_tokens',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('user_id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('prefix', sa.String(40), nullable=False),
    sa.Column('token_hash', sa.String(64), nullable=False),
    sa.Column('scopes', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_api_tokens_user_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_tokens')),
    sa.UniqueConstraint('token_hash', name=op.f('uq_api_tokens_token_hash'))
    )
    with op.batch_alter_table('api_tokens', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_api_tokens_user_id'), ['user_id'], unique=False)

    op.create_table('jobs',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('external_id', sa.String(200), nullable=True),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('model', sa.String(100), nullable=False),
    sa.Column('adaptivity', sa.String(40), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=True),
    sa.Column('min_gpus', sa.Integer(), nullable=False),
    sa.Column('max_gpus', sa.Integer(), nullable=True),
    sa.Column('batch_size', sa.Integer(), nullable=True),
    sa.Column('max_batch_size', sa.Integer(), nullable=True),
    sa.Column('preemptible', sa.Boolean(), nullable=False),
    sa.Column('gpu_types', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('work_scale', sa.Float(), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('submitted_seconds', sa.Float(), nullable=False),
    sa.Column('started_seconds', sa.Float(), nullable=True),
    sa.Column('finished_seconds', sa.Float(), nullable=True),
    sa.Column('progress', sa.Float(), nullable=False),
    sa.Column('remaining_work', sa.Float(), nullable=False),
    sa.Column('gpu_seconds', sa.Float(), nullable=False),
    sa.Column('restarts', sa.Integer(), nullable=False),
    sa.Column('goodput', sa.Float(), nullable=True),
    sa.Column('gpu_type', sa.String(64), nullable=True),
    sa.Column('gpus', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('batch', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('reason_code', sa.String(64), nullable=False),
    sa.Column('reason_evidence', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('as_of_round', sa.Integer(), nullable=True),
    sa.Column('cancel_requested', sa.Boolean(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_jobs_cluster_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_jobs_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_jobs_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_jobs')),
    sa.UniqueConstraint('tenant_id', 'external_id', name=op.f('uq_jobs_tenant_id_external_id'))
    )
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.create_index('ix_jobs_cluster_state', ['cluster_id', 'state'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_model'), ['model'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_owner_id'), ['owner_id'], unique=False)
        batch_op.create_index('ix_jobs_submitted', ['submitted_seconds', 'id'], unique=False)
        batch_op.create_index('ix_jobs_tenant_submitted', ['tenant_id', 'submitted_seconds'], unique=False)

    op.create_table('operations',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('done', sa.Float(), nullable=False),
    sa.Column('total', sa.Float(), nullable=False),
    sa.Column('unit', sa.String(40), nullable=False),
    sa.Column('message', sa.String(), nullable=False),
    sa.Column('error', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('result_url', sa.String(500), nullable=True),
    sa.Column('cancel_requested', sa.Boolean(), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('heartbeat_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_operations_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_operations_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_operations'))
    )
    with op.batch_alter_table('operations', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_operations_owner_id'), ['owner_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_operations_state'), ['state'], unique=False)
        batch_op.create_index(batch_op.f('ix_operations_tenant_id'), ['tenant_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_operations_updated_at'), ['updated_at'], unique=False)

    op.create_table('allocations',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('round_number', sa.Integer(), nullable=False),
    sa.Column('from_seconds', sa.Float(), nullable=False),
    sa.Column('to_seconds', sa.Float(), nullable=True),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('node_count', sa.Integer(), nullable=False),
    sa.Column('gpus', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('total_batch_size', sa.Integer(), nullable=True),
    sa.Column('per_gpu_batch_size', sa.Integer(), nullable=True),
    sa.Column('accumulation_steps', sa.Integer(), nullable=True),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_allocations_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_allocations_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_allocations'))
    )
    with op.batch_alter_table('allocations', schema=None) as batch_op:
        batch_op.create_index('ix_allocations_cluster', ['cluster_id', 'from_seconds'], unique=False)
        batch_op.create_index('ix_allocations_job', ['job_id', 'id'], unique=False)

    op.create_table('job_events',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('round_number', sa.Integer(), nullable=True),
    sa.Column('cluster_seconds', sa.Float(), nullable=False),
    sa.Column('kind', sa.String(40), nullable=False),
    sa.Column('state', sa.String(40), nullable=True),
    sa.Column('data', sa.JSON(none_as_null=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_job_events_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_events_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_events'))
    )
    with op.batch_alter_table('job_events', schema=None) as batch_op:
        batch_op.create_index('ix_job_events_cluster', ['cluster_id', 'cluster_seconds'], unique=False)
        batch_op.create_index('ix_job_events_job', ['job_id', 'id'], unique=False)

    op.create_table('simulations',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('request', sa.LargeBinary(), nullable=False),
    sa.Column('operation_id', sa.String(40), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['operation_id'], ['operations.id'], name=op.f('fk_simulations_operation_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_simulations_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_simulations_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_simulations'))
    )
    with op.batch_alter_table('simulations', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_simulations_operation_id'), ['operation_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_simulations_owner_id'), ['owner_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_simulations_tenant_id'), ['tenant_id'], unique=False)

    op.create_table('simulation_runs',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('simulation_id', sa.String(40), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('policy', sa.String(100), nullable=False),
    sa.Column('policy_parameters', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('placer', sa.String(100), nullable=False),
    sa.Column('seed', sa.Integer(), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('summary', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('result', sa.LargeBinary(), nullable=True),
    sa.Column('error', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['simulation_id'], ['simulations.id'], name=op.f('fk_simulation_runs_simulation_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_simulation_runs'))
    )
    with op.batch_alter_table('simulation_runs', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_simulation_runs_simulation_id'), ['simulation_id'], unique=False)



def downgrade() -> None:
    with op.batch_alter_table('simulation_runs', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_simulation_runs_simulation_id'))

    op.drop_table('simulation_runs')
    with op.batch_alter_table('simulations', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_simulations_tenant_id'))
        batch_op.drop_index(batch_op.f('ix_simulations_owner_id'))
        batch_op.drop_index(batch_op.f('ix_simulations_operation_id'))

    op.drop_table('simulations')
    with op.batch_alter_table('job_events', schema=None) as batch_op:
        batch_op.drop_index('ix_job_events_job')
        batch_op.drop_index('ix_job_events_cluster')

    op.drop_table('job_events')
    with op.batch_alter_table('allocations', schema=None) as batch_op:
        batch_op.drop_index('ix_allocations_job')
        batch_op.drop_index('ix_allocations_cluster')

    op.drop_table('allocations')
    with op.batch_alter_table('operations', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_operations_updated_at'))
        batch_op.drop_index(batch_op.f('ix_operations_tenant_id'))
        batch_op.drop_index(batch_op.f('ix_operations_state'))
        batch_op.drop_index(batch_op.f('ix_operations_owner_id'))

    op.drop_table('operations')
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.drop_index('ix_jobs_tenant_submitted')
        batch_op.drop_index('ix_jobs_submitted')
        batch_op.drop_index(batch_op.f('ix_jobs_owner_id'))
        batch_op.drop_index(batch_op.f('ix_jobs_model'))
        batch_op.drop_index('ix_jobs_cluster_state')

    op.drop_table('jobs')
    with op.batch_alter_table('api_tokens', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_api_tokens_user_id'))

    op.drop_table('api_tokens')
    with op.batch_alter_table('users', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_users_tenant_id'))

    op.drop_table('users')
    with op.batch_alter_table('rounds', schema=None) as batch_op:
        batch_op.drop_index('ix_rounds_cluster_at')

    op.drop_table('rounds')
    with op.batch_alter_table('outbox', schema=None) as batch_op:
        batch_op.drop_index('ix_outbox_cluster')

    op.drop_table('outbox')
    with op.batch_alter_table('nodes', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_nodes_cluster_id'))

    op.drop_table('nodes')
    op.drop_table('cluster_states')
    op.drop_table('tenants')
    with op.batch_alter_table('idempotency_keys', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_idempotency_keys_created_at'))

    op.drop_table('idempotency_keys')
    op.drop_table('clusters')
