"""webhooks for events: noticed by triggers, delivered by the worker"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0024'
down_revision = '0023'
branch_labels = None
depends_on = None

# A later migration that recreates one of these tables on SQLite drops its trigger and must create
# it again.
TOLD = "NEW.state IS NOT NULL OR NEW.kind IN ('deadline', 'checkpoint')"
TURNED = '(OLD.fault IS NULL) <> (NEW.fault IS NULL)'
EVENTS = (
    ('job_events', 'INSERT', TOLD, 'NEW.id', 'NULL'),
    ('reports', 'INSERT', None, 'NEW.id', 'NULL'),
    ('clusters', 'UPDATE OF fault', TURNED, 'NEW.id', 'NEW.fault'),
    ('nodes', 'UPDATE OF fault', TURNED, 'NEW.id', 'NEW.fault'),
)


def upgrade() -> None:
    op.create_table('webhooks',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('tenant_id', sa.String(40), nullable=True),
    sa.Column('cluster_id', sa.String(40), nullable=True),
    sa.Column('owner_id', sa.String(40), nullable=False),
    sa.Column('name', sa.String(200), nullable=False),
    sa.Column('url', sa.String(2000), nullable=False),
    sa.Column('events', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('secret', sa.LargeBinary(), nullable=False),
    sa.Column('old_secret', sa.LargeBinary(), nullable=True),
    sa.Column('old_secret_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('active', sa.Boolean(), nullable=False),
    sa.Column('last_number', sa.Integer(), nullable=False),
    sa.Column('failures', sa.Integer(), nullable=False),
    sa.Column('rests_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_webhooks_cluster_id')),
    sa.ForeignKeyConstraint(['owner_id'], ['users.id'], name=op.f('fk_webhooks_owner_id')),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('fk_webhooks_tenant_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhooks'))
    )
    op.create_index(op.f('ix_webhooks_tenant_id'), 'webhooks', ['tenant_id'])
    op.create_table('webhook_notices',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source', sa.String(40), nullable=False),
    sa.Column('source_id', sa.String(40), nullable=False),
    sa.Column('note', sa.String(1000), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), server_default=sa.text('CURRENT_TIMESTAMP'), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_notices'))
    )
    op.create_table('webhook_deliveries',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('webhook_id', sa.String(40), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('type', sa.String(40), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('state', sa.String(40), nullable=False),
    sa.Column('tries', sa.Integer(), nullable=False),
    sa.Column('answered', sa.Integer(), nullable=True),
    sa.Column('message', sa.String(1000), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('next_try_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('until', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('heartbeat_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_webhook_deliveries_webhook_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_deliveries')),
    sa.UniqueConstraint('webhook_id', 'number', name=op.f('uq_webhook_deliveries_webhook_id_number'))
    )
    is_open = sa.text('finished_at IS NULL')
    op.create_index('ix_webhook_deliveries_open', 'webhook_deliveries', ['webhook_id', 'number'], sqlite_where=is_open, postgresql_where=is_open)
    op.create_index('ix_webhook_deliveries_finished_at', 'webhook_deliveries', ['finished_at'])
    make = sqlite_trigger if op.get_bind().dialect.name == 'sqlite' else postgres_trigger
    for event in EVENTS:
        for statement in make(*event):
            op.execute(statement)


def downgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == 'sqlite'
    for table, *_ in EVENTS:
        op.execute(f'DROP TRIGGER {table}_noticed' + ('' if is_sqlite else f' ON {table}'))
        if not is_sqlite:
            op.execute(f'DROP FUNCTION notice_{table}')
    op.drop_table('webhook_deliveries')
    op.drop_table('webhook_notices')
    op.drop_table('webhooks')


def noted(table, row, note):
    return (
        f"INSERT INTO webhook_notices (source, source_id, note) SELECT '{table}', CAST({row} AS VARCHAR(40)), {note} "
        'WHERE EXISTS (SELECT 1 FROM webhooks WHERE active);'
    )


def sqlite_trigger(table, change, when, row, note):
    condition = '' if when is None else f'WHEN {when} '
    yield f'CREATE TRIGGER {table}_noticed AFTER {change} ON {table} {condition}BEGIN {noted(table, row, note)} END'


def postgres_trigger(table, change, when, row, note):
    condition = '' if when is None else f'WHEN ({when}) '
    yield (
        f'CREATE FUNCTION notice_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ '
        f'BEGIN {noted(table, row, note)} RETURN NULL; END $$'
    )
    yield (
        f'CREATE TRIGGER {table}_noticed AFTER {change} ON {table} FOR EACH ROW {condition}'
        f'EXECUTE FUNCTION notice_{table}()'
    )
