"""sharing_samples: by the batches of both jobs, with weights. No live cluster shared before"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0039'
down_revision = '0038'
branch_labels = None
depends_on = None

_KEY = ('cluster_id', 'victim', 'partner', 'gpu_type', 'gpu_count')
_NEW_KEY = ('cluster_id', 'victim', 'victim_batch', 'partner', 'partner_batch', 'gpu_type', 'gpu_count')


def upgrade() -> None:
    op.drop_table('sharing_samples')
    _create(_NEW_KEY, weighted=True)


def downgrade() -> None:
    op.drop_table('sharing_samples')
    _create(_KEY, weighted=False)


def _create(key: tuple[str, ...], *, weighted: bool) -> None:
    batches = [sa.Column(name, sa.Integer(), nullable=False) for name in ('victim_batch', 'partner_batch')]
    weight = [sa.Column('weight', sa.Float(), nullable=False)]
    op.create_table('sharing_samples',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('victim', sa.String(200), nullable=False),
    sa.Column('partner', sa.String(200), nullable=False),
    *(batches if weighted else []),
    sa.Column('gpu_type', sa.String(64), nullable=False),
    sa.Column('gpu_count', sa.Integer(), nullable=False),
    sa.Column('count', sa.Integer(), nullable=False),
    *(weight if weighted else []),
    sa.Column('ratio', sa.Float(), nullable=False),
    sa.Column('ratio_m2', sa.Float(), nullable=False),
    sa.Column('updated_seconds', sa.Float(), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_sharing_samples_cluster_id')),
    sa.PrimaryKeyConstraint(*key, name=op.f('pk_sharing_samples'))
    )
