"""what was changed, by whom; workers that live"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0022'
down_revision = '0021'
branch_labels = None
depends_on = None

# A record is added and, after its time, deleted. Nothing changes it.
_SQLITE_STAYS = """
CREATE TRIGGER audit_records_stay BEFORE UPDATE ON audit_records
BEGIN SELECT RAISE(ABORT, 'records of changes are not changed'); END
"""
_POSTGRES_STAYS = (
    """
CREATE FUNCTION audit_records_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'records of changes are not changed'; END $$
""",
    """
CREATE TRIGGER audit_records_stay BEFORE UPDATE ON audit_records
FOR EACH ROW EXECUTE FUNCTION audit_records_stay()
""",
)


def upgrade() -> None:
    op.create_table('audit_records',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('actor_kind', sa.String(20), nullable=False),
    sa.Column('actor_id', sa.String(40), nullable=True),
    sa.Column('actor_name', sa.String(200), nullable=False),
    sa.Column('actor_tenant_id', sa.String(40), nullable=True),
    sa.Column('credential', sa.String(40), nullable=True),
    sa.Column('tenant_id', sa.String(40), nullable=True),
    sa.Column('action', sa.String(60), nullable=False),
    sa.Column('target_kind', sa.String(20), nullable=False),
    sa.Column('target_id', sa.String(40), nullable=False),
    sa.Column('before', sa.JSON(), nullable=False),
    sa.Column('after', sa.JSON(), nullable=False),
    sa.Column('request_id', sa.String(64), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_records'))
    )
    op.create_index('ix_audit_records_at', 'audit_records', ['at'])
    op.create_index('ix_audit_records_tenant', 'audit_records', ['tenant_id', 'id'])
    op.create_index('ix_audit_records_actor', 'audit_records', ['actor_name', 'id'])
    op.create_index('ix_audit_records_actor_id', 'audit_records', ['actor_id', 'id'])
    op.create_index('ix_audit_records_action', 'audit_records', ['action', 'id'])
    op.create_index('ix_audit_records_target', 'audit_records', ['target_id', 'id'])
    op.create_table('worker_heartbeats',
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('queues', sa.JSON(), nullable=False),
    sa.Column('version', sa.String(40), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_worker_heartbeats'))
    )
    if op.get_bind().dialect.name == 'sqlite':
        op.execute(_SQLITE_STAYS)
    else:
        for statement in _POSTGRES_STAYS:
            op.execute(statement)


def downgrade() -> None:
    op.drop_table('worker_heartbeats')
    op.drop_table('audit_records')
    if op.get_bind().dialect.name != 'sqlite':
        op.execute('DROP FUNCTION audit_records_stay')
