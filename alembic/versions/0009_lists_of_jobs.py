"""fast lists of jobs: an index for every order, and counts by state kept by triggers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None

STEADY = {'submitted': ['submitted_seconds'], 'name': ['name'], 'model': ['model', 'submitted_seconds']}
SETTLED = {'state': ['state', 'submitted_seconds'], 'progress': ['progress'], 'gpu_seconds': ['gpu_seconds'], 'restarts': ['restarts']}
KIND = 'tenant_id, cluster_id, owner_id, model, state'
NEW, OLD = (', '.join(f'{row}.{name}' for name in KIND.split(', ')) for row in ('NEW', 'OLD'))
ADD = f'INSERT INTO job_counts ({KIND}, change) VALUES'


def upgrade() -> None:
    for name in ('ix_jobs_model', 'ix_jobs_owner_id', 'ix_jobs_submitted', 'ix_jobs_tenant_submitted'):
        op.drop_index(name, 'jobs')
    for name, columns, where in indexes():
        condition = None if where is None else sa.text(where)
        op.create_index(name, 'jobs', columns, unique=False, sqlite_where=condition, postgresql_where=condition)
    op.create_table('job_counts',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=False),
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('model', sa.String(100), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('change', sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_counts'))
    )
    op.execute(f'INSERT INTO job_counts ({KIND}, change) SELECT {KIND}, count(*) FROM jobs GROUP BY {KIND}')
    # A later migration that recreates the table `jobs` on SQLite drops these and must create them
    # again.
    for statement in SQLITE if op.get_bind().dialect.name == 'sqlite' else POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == 'sqlite':
        for trigger in ('jobs_counted_in', 'jobs_counted_over', 'jobs_counted_out'):
            op.execute(f'DROP TRIGGER {trigger}')
    else:
        op.execute('DROP TRIGGER jobs_counted ON jobs')
        op.execute('DROP TRIGGER jobs_counted_over ON jobs')
        op.execute('DROP FUNCTION count_job()')
    op.drop_table('job_counts')
    for name, _, _ in indexes():
        op.drop_index(name, 'jobs')
    op.create_index('ix_jobs_model', 'jobs', ['model'], unique=False)
    op.create_index('ix_jobs_owner_id', 'jobs', ['owner_id'], unique=False)
    op.create_index('ix_jobs_submitted', 'jobs', ['submitted_seconds', 'id'], unique=False)
    op.create_index('ix_jobs_tenant_submitted', 'jobs', ['tenant_id', 'submitted_seconds'], unique=False)


def indexes():
    for prefix, first in (('', []), ('tenant_', ['tenant_id'])):
        for name, columns in STEADY.items():
            yield f'ix_jobs_{prefix}{name}', [*first, *columns, 'id'], None
        for name, columns in SETTLED.items():
            yield f'ix_jobs_ended_{prefix}{name}', [*first, *columns, 'id'], 'finished_seconds IS NOT NULL'
    yield 'ix_jobs_owner_submitted', ['owner_id', 'submitted_seconds', 'id'], None
    yield 'ix_jobs_cluster_submitted', ['cluster_id', 'submitted_seconds', 'id'], None
    yield 'ix_jobs_cluster_tenant_submitted', ['cluster_id', 'tenant_id', 'submitted_seconds', 'id'], None
    yield 'ix_jobs_active', ['cluster_id', 'tenant_id'], 'finished_seconds IS NULL'
    yield 'ix_jobs_holding', ['gpu_type'], 'gpu_type IS NOT NULL'


SQLITE = (
    f'CREATE TRIGGER jobs_counted_in AFTER INSERT ON jobs BEGIN {ADD} ({NEW}, 1); END',
    f'CREATE TRIGGER jobs_counted_out AFTER DELETE ON jobs BEGIN {ADD} ({OLD}, -1); END',
    f'CREATE TRIGGER jobs_counted_over AFTER UPDATE OF {KIND} ON jobs WHEN ({OLD}) IS NOT ({NEW}) '
    f'BEGIN {ADD} ({OLD}, -1), ({NEW}, 1); END',
)
POSTGRESQL = (
    f"""
    CREATE FUNCTION count_job() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'INSERT' THEN {ADD} ({OLD}, -1); END IF;
        IF TG_OP <> 'DELETE' THEN {ADD} ({NEW}, 1); END IF;
        RETURN NULL;
    END $$
    """,
    'CREATE TRIGGER jobs_counted AFTER INSERT OR DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION count_job()',
    f'CREATE TRIGGER jobs_counted_over AFTER UPDATE ON jobs FOR EACH ROW WHEN (({OLD}) IS DISTINCT FROM ({NEW})) '
    'EXECUTE FUNCTION count_job()',
)
