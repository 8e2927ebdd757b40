"""versions of tenants and users, passwords, sessions of browsers, and tries to sign in"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('tenants', sa.Column('closed_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('tenants', sa.Column('version', sa.Integer(), nullable=False, server_default='1'))
    op.add_column('users', sa.Column('kind', sa.String(40), nullable=False, server_default='person'))
    op.add_column('users', sa.Column('password_hash', sa.String(300), nullable=True))
    op.add_column('users', sa.Column('issuer', sa.String(300), nullable=True))
    op.add_column('users', sa.Column('subject', sa.String(300), nullable=True))
    op.add_column('users', sa.Column('created_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('users', sa.Column('signed_in_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('users', sa.Column('version', sa.Integer(), nullable=False, server_default='1'))
    op.create_index('ix_users_issuer_subject', 'users', ['issuer', 'subject'], unique=True)
    op.add_column('api_tokens', sa.Column('made_by', sa.String(40), nullable=True))
    op.add_column('api_tokens', sa.Column('made_with', sa.String(40), nullable=True))
    op.create_index('ix_api_tokens_made_with', 'api_tokens', ['made_with'])
    op.create_table('browser_sessions',
    sa.Column('id', sa.String(40), nullable=False),
    sa.Column('user_id', sa.String(40), nullable=False),
    sa.Column('secret_hash', sa.String(64), nullable=False),
    sa.Column('how', sa.String(40), nullable=False),
    sa.Column('browser', sa.String(200), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_browser_sessions_user_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_browser_sessions')),
    sa.UniqueConstraint('secret_hash', name=op.f('uq_browser_sessions_secret_hash'))
    )
    op.create_index('ix_browser_sessions_user_id', 'browser_sessions', ['user_id'])
    op.create_index('ix_browser_sessions_expires_at', 'browser_sessions', ['expires_at'])
    op.create_table('sign_in_tries',
    sa.Column('key', sa.String(64), nullable=False),
    sa.Column('tries', sa.Integer(), nullable=False),
    sa.Column('since', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_sign_in_tries'))
    )
    op.create_index('ix_sign_in_tries_since', 'sign_in_tries', ['since'])


def downgrade() -> None:
    op.drop_table('sign_in_tries')
    op.drop_table('browser_sessions')
    op.drop_index('ix_api_tokens_made_with', 'api_tokens')
    op.drop_column('api_tokens', 'made_with')
    op.drop_column('api_tokens', 'made_by')
    op.drop_index('ix_users_issuer_subject', 'users')
    for name in ('version', 'signed_in_at', 'created_at', 'subject', 'issuer', 'password_hash', 'kind'):
        op.drop_column('users', name)
    for name in ('version', 'closed_at'):
        op.drop_column('tenants', name)
