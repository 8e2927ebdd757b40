"""what is believed of commands: settled samples, fits, scores of GPUs, sharing; profile attempts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0014'
down_revision = '0013'
branch_labels = None
depends_on = None

_SETTLED = ('believed_step', 'believed_sync', 'believed_weight')


def upgrade() -> None:
    # Not in a batch: SQLite would recreate tables that others refer to.
    op.add_column('attempts', sa.Column('kind', sa.String(40), nullable=False, server_default='train'))
    op.add_column('attempts', sa.Column('stepping_seconds', sa.Float(), nullable=True))
    op.add_column('job_commands', sa.Column('profile', sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column('job_commands', sa.Column('utilisation', sa.JSON(none_as_null=True), nullable=True))
    for name in _SETTLED:
        op.add_column('job_samples', sa.Column(name, sa.Float(), nullable=False, server_default='1'))
    op.execute('UPDATE job_samples SET believed_step = step_mean, believed_sync = sync_mean')

    op.create_table('job_fits',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('parameters', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('samples', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('error', sa.Float(), nullable=False),
    sa.Column('forecast_error', sa.Float(), nullable=True),
    sa.Column('fitted_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_fits_job_id')),
    sa.PrimaryKeyConstraint('job_id', 'gpu_type', name=op.f('pk_job_fits'))
    )
    op.create_table('gpu_scores',
    sa.Column('node_id', sa.String(40), nullable=False),
    sa.Column('gpu_index', sa.Integer(), nullable=False),
    sa.Column('application', sa.String(200), nullable=False),
    sa.Column('count', sa.Integer(), nullable=False),
    sa.Column('ratio', sa.Float(), nullable=False),
    sa.Column('updated_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('fk_gpu_scores_node_id')),
    sa.PrimaryKeyConstraint('node_id', 'gpu_index', 'application', name=op.f('pk_gpu_scores'))
    )
    op.create_table('sharing_samples',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('victim', sa.String(200), nullable=False),
    sa.Column('partner', sa.String(200), nullable=False),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('count', sa.Integer(), nullable=False),
    sa.Column('ratio', sa.Float(), nullable=False),
    sa.Column('ratio_m2', sa.Float(), nullable=False),
    sa.Column('updated_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_sharing_samples_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', 'victim', 'partner', 'gpu_type', 'gpu_count', name=op.f('pk_sharing_samples'))
    )


def downgrade() -> None:
    for table in ('sharing_samples', 'gpu_scores', 'job_fits'):
        op.drop_table(table)
    for name in _SETTLED:
        op.drop_column('job_samples', name)
    for table, name in (('job_commands', 'utilisation'), ('job_commands', 'profile'), ('attempts', 'stepping_seconds'), ('attempts', 'kind')):
        op.drop_column(table, name)
