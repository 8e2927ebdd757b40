"""job_flags: what is unlikely of what a job reported; webhooks hear of it"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0052'
down_revision = '0051'
branch_labels = None
depends_on = None

BEFORE = "NEW.state IS NOT NULL OR NEW.kind IN ('deadline', 'checkpoint')"
AFTER = "NEW.state IS NOT NULL OR NEW.kind IN ('deadline', 'checkpoint', 'flag')"


def upgrade() -> None:
    op.create_table('job_flags',
    sa.Column('job_id', sa.String(40), nullable=False),
    sa.Column('kind', sa.String(20), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('at_seconds', sa.Float(), nullable=False),
    sa.Column('said', sa.Float(), nullable=False),
    sa.Column('seen', sa.Float(), nullable=False),
    sa.Column('unit', sa.String(40), nullable=False),
    sa.Column('dismissed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('dismissed_by', sa.String(200), nullable=True),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_flags_job_id')),
    sa.PrimaryKeyConstraint('job_id', 'kind', name=op.f('pk_job_flags'))
    )
    stands = sa.text('dismissed_at IS NULL')
    op.create_index('ix_job_flags_standing', 'job_flags', ['job_id'], sqlite_where=stands, postgresql_where=stands)
    notice_when(AFTER)


def downgrade() -> None:
    op.execute("DELETE FROM job_events WHERE kind = 'flag'")
    op.drop_table('job_flags')
    notice_when(BEFORE)


def notice_when(condition: str) -> None:
    """Replace the trigger on job_events (of 0024) by one with this condition."""
    if op.get_bind().dialect.name == 'sqlite':
        op.execute('DROP TRIGGER job_events_noticed')
        op.execute(
            f'CREATE TRIGGER job_events_noticed AFTER INSERT ON job_events WHEN {condition} BEGIN '
            "INSERT INTO webhook_notices (source, source_id, note) SELECT 'job_events', "
            'CAST(NEW.id AS VARCHAR(40)), NULL WHERE EXISTS (SELECT 1 FROM webhooks WHERE active); END'
        )
        return
    op.execute('DROP TRIGGER job_events_noticed ON job_events')
    op.execute(
        f'CREATE TRIGGER job_events_noticed AFTER INSERT ON job_events FOR EACH ROW WHEN ({condition}) '
        'EXECUTE FUNCTION notice_job_events()'
    )
