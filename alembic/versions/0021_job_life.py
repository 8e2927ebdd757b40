"""jobs that are paused, and for how long; jobs that start after others; arrays; deadlines"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0021'
down_revision = '0020'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('jobs', sa.Column('pause_requested', sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column('jobs', sa.Column('paused_by', sa.String(200), nullable=True))
    op.add_column('jobs', sa.Column('paused_since_seconds', sa.Float(), nullable=True))
    op.add_column('jobs', sa.Column('unwaited_seconds', sa.Float(), nullable=False, server_default='0'))
    op.add_column('jobs', sa.Column('declared_version', sa.Integer(), nullable=False, server_default='1'))
    op.add_column('jobs', sa.Column('after', sa.JSON(none_as_null=True), nullable=False, server_default='[]'))
    op.add_column('jobs', sa.Column('deadline_seconds', sa.Float(), nullable=True))
    op.add_column('jobs', sa.Column('deadline_told_seconds', sa.Float(), nullable=True))
    op.add_column('jobs', sa.Column('array_id', sa.String(40), nullable=True))
    op.add_column('jobs', sa.Column('array_index', sa.Integer(), nullable=True))
    op.create_index('ix_jobs_array', 'jobs', ['array_id', 'array_index'],
                    sqlite_where=sa.text('array_id IS NOT NULL'), postgresql_where=sa.text('array_id IS NOT NULL'))
    op.create_table('job_dependencies',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('needed_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('is_open', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_job_dependencies_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_dependencies_job_id')),
    sa.ForeignKeyConstraint(['needed_id'], ['jobs.id'], name=op.f('fk_job_dependencies_needed_id')),
    sa.PrimaryKeyConstraint('job_id', 'needed_id', name=op.f('pk_job_dependencies'))
    )
    op.create_index('ix_job_dependencies_open', 'job_dependencies', ['cluster_id'],
                    sqlite_where=sa.text('is_open'), postgresql_where=sa.text('is_open'))
    op.create_table('job_pauses',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('from_seconds', sa.Float(), nullable=False),
    sa.Column('to_seconds', sa.Float(), nullable=True),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_job_pauses_cluster_id')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_pauses_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_pauses'))
    )
    op.create_index('ix_job_pauses_ended', 'job_pauses', ['cluster_id', 'to_seconds'])
    op.create_index('ix_job_pauses_job', 'job_pauses', ['job_id', 'id'])


def downgrade() -> None:
    op.drop_table('job_pauses')
    op.drop_table('job_dependencies')
    op.drop_index('ix_jobs_array', 'jobs')
    for name in ('deadline_told_seconds', 'deadline_seconds', 'array_index', 'array_id', 'after', 'declared_version', 'unwaited_seconds', 'paused_since_seconds', 'paused_by', 'pause_requested'):
        op.drop_column('jobs', name)
