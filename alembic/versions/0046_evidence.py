"""gpu_scores: by attempt and tenant. Measured figures: only numbers that can be

Scores of before mixed all tenants: whose they are is not known, so they are measured again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0046'
down_revision = '0045'
branch_labels = None
depends_on = None

# Numbers, not 'Infinity': SQLite compares a number with a text as smaller. PostgreSQL's NaN is larger
# than every number, and SQLite stores it as NULL.
CHECKS = {
    'job_samples': {
        'step_is_time': 'step_mean > 0 AND step_mean <= 1e5 AND step_m2 >= 0 AND step_m2 <= 1e18',
        'sync_is_time': 'sync_mean >= 0 AND sync_mean <= 1e5',
        'belief_is_time': 'believed_step > 0 AND believed_step <= 1e5 AND believed_sync >= 0 '
        'AND believed_sync <= 1e5 AND believed_weight >= 0 AND believed_weight <= 1',
    },
    'job_gradients': {
        'gradient_is_finite': 'square >= 0 AND square <= 1e30 AND variance >= 0 AND variance <= 1e30 '
        'AND progress >= 0 AND progress <= 1e18',
    },
}
SCORE_CHECKS = {'score_is_ratio': 'count >= 1 AND ratio > 0.3 AND ratio < 3.1'}


def upgrade() -> None:
    op.drop_table('gpu_scores')
    op.create_table('gpu_scores',
    sa.Column('node_id', sa.String(40), nullable=False),
    sa.Column('gpu_index', sa.Integer(), nullable=False),
    sa.Column('attempt_id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('application', sa.String(200), nullable=False),
    sa.Column('count', sa.Integer(), nullable=False),
    sa.Column('ratio', sa.Float(), nullable=False),
    sa.Column('updated_seconds', sa.Float(), nullable=False),
    *(sa.CheckConstraint(rule, name=op.f(f'ck_gpu_scores_{name}')) for name, rule in SCORE_CHECKS.items()),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('fk_gpu_scores_node_id')),
    sa.ForeignKeyConstraint(['attempt_id'], ['attempts.id'], name=op.f('fk_gpu_scores_attempt_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_gpu_scores_tenant_id')),
    sa.PrimaryKeyConstraint('node_id', 'gpu_index', 'attempt_id', name=op.f('pk_gpu_scores'))
    )
    for table, rules in CHECKS.items():
        kept = ' AND '.join(f'({rule})' for rule in rules.values())
        op.execute(f'DELETE FROM {table} WHERE NOT ({kept})')
        with op.batch_alter_table(table) as batch:
            for name, rule in rules.items():
                batch.create_check_constraint(op.f(f'ck_{table}_{name}'), rule)


def downgrade() -> None:
    for table, rules in CHECKS.items():
        with op.batch_alter_table(table) as batch:
            for name in rules:
                batch.drop_constraint(op.f(f'ck_{table}_{name}'), type_='check')
    op.drop_table('gpu_scores')
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
