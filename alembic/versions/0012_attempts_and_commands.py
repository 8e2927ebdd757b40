"""attempts, the GPUs that they hold, what is measured in them; commands and secrets of jobs"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('nodes', sa.Column('fault', sa.String(1000), nullable=True))
    op.create_table('attempts',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('round_number', sa.Integer(), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('outcome', sa.String(40), nullable=True),
    sa.Column('reason', sa.String(1000), nullable=False),
    sa.Column('reports', sa.Boolean(), nullable=False),
    sa.Column('engine_id', sa.String(200), nullable=True),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpus_by_node', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('plan', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('plan_number', sa.Integer(), nullable=False),
    sa.Column('launched', sa.Boolean(), nullable=False),
    sa.Column('ordered_seconds', sa.Float(), nullable=False),
    sa.Column('queued_seconds', sa.Float(), nullable=True),
    sa.Column('alive_seconds', sa.Float(), nullable=True),
    sa.Column('running_seconds', sa.Float(), nullable=True),
    sa.Column('stop_reason', sa.String(40), nullable=True),
    sa.Column('stop_seconds', sa.Float(), nullable=True),
    sa.Column('stop_told', sa.Boolean(), nullable=False),
    sa.Column('killed_seconds', sa.Float(), nullable=True),
    sa.Column('absent_seconds', sa.Float(), nullable=True),
    sa.Column('ended_seconds', sa.Float(), nullable=True),
    sa.Column('exits', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('last_lines', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('incarnation', sa.String(64), nullable=True),
    sa.Column('report_sequence', sa.Integer(), nullable=False),
    sa.Column('reported_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('reported_seconds', sa.Float(), nullable=True),
    sa.Column('progress', sa.Float(), nullable=True),
    sa.Column('total_samples', sa.Float(), nullable=True),
    sa.Column('checkpoint_step', sa.Integer(), nullable=True),
    sa.Column('restore_seconds', sa.Float(), nullable=True),
    sa.Column('loss', sa.Float(), nullable=True),
    sa.Column('running_plan', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('goodput', sa.Float(), nullable=True),
    sa.Column('finished', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_attempts_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_attempts_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_attempts')),
    sa.UniqueConstraint('job_id', 'number', name=op.f('uq_attempts_job_id_number'))
    )
    op.create_index('ix_attempts_live', 'attempts', ['cluster_id'], unique=False, sqlite_where=sa.text("state != 'ended'"), postgresql_where=sa.text("state != 'ended'"))

    op.create_table('job_commands',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('argv', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('cwd', sa.String(4096), nullable=False),
    sa.Column('env', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('stop_seconds', sa.Float(), nullable=False),
    sa.Column('max_retries', sa.Integer(), nullable=False),
    sa.Column('total_samples', sa.Float(), nullable=True),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_commands_job_id')),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_job_commands'))
    )
    op.create_table('job_gradients',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('square', sa.Float(), nullable=False),
    sa.Column('variance', sa.Float(), nullable=False),
    sa.Column('steps', sa.Integer(), nullable=False),
    sa.Column('batch_size', sa.Integer(), nullable=False),
    sa.Column('progress', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_gradients_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_gradients'))
    )
    op.create_index('ix_job_gradients_job', 'job_gradients', ['job_id', 'id'], unique=False)

    op.create_table('job_samples',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('node_count', sa.Integer(), nullable=False),
    sa.Column('replica_count', sa.Integer(), nullable=False),
    sa.Column('per_gpu_batch_size', sa.Integer(), nullable=False),
    sa.Column('accumulation_steps', sa.Integer(), nullable=False),
    sa.Column('count', sa.Integer(), nullable=False),
    sa.Column('step_mean', sa.Float(), nullable=False),
    sa.Column('step_m2', sa.Float(), nullable=False),
    sa.Column('sync_mean', sa.Float(), nullable=False),
    sa.Column('first_seconds', sa.Float(), nullable=False),
    sa.Column('last_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_samples_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_samples')),
    sa.UniqueConstraint('job_id', 'gpu_type', 'node_count', 'replica_count', 'per_gpu_batch_size', 'accumulation_steps', name='uq_job_samples_configuration')
    )
    op.create_table('job_secrets',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('value', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_secrets_job_id')),
    sa.PrimaryKeyConstraint('job_id', 'name', name=op.f('pk_job_secrets'))
    )
    op.create_table('gpu_holds',
    sa.Column('node_id', sa.String(40), nullable=False),
    sa.Column('gpu_index', sa.Integer(), nullable=False),
    sa.Column('slot', sa.Integer(), nullable=False),
    sa.Column('attempt_id', sa.String(40), nullable=False),
    sa.ForeignKeyConstraint(['attempt_id'], ['attempts.id'], name=op.f('fk_gpu_holds_attempt_id')),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('fk_gpu_holds_node_id')),
    sa.PrimaryKeyConstraint('node_id', 'gpu_index', 'slot', name=op.f('pk_gpu_holds'))
    )
    op.create_index(op.f('ix_gpu_holds_attempt_id'), 'gpu_holds', ['attempt_id'], unique=False)



def downgrade() -> None:
    for table in ('gpu_holds', 'job_gradients', 'job_samples', 'attempts', 'job_secrets', 'job_commands'):
        op.drop_table(table)
    op.drop_column('nodes', 'fault')
