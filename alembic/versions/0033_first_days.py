"""share_days: a cluster's first day has no GPUs from before the cluster began"""

from __future__ import annotations

from datetime import UTC

import sqlalchemy as sa
from alembic import op

revision = '0033'
down_revision = '0032'
branch_labels = None
depends_on = None

_CLUSTERS = sa.table('clusters', sa.column('id', sa.String), sa.column('epoch', sa.DateTime(timezone=True)))
_SHARES = sa.table(
    'share_days',
    sa.column('cluster_id', sa.String),
    sa.column('day', sa.Date),
    sa.column('capacity_gpu_seconds', sa.Float),
)
_CAPACITY = sa.table(
    'capacity_days', sa.column('cluster_id', sa.String), sa.column('day', sa.Date), sa.column('capacity_ms', sa.BigInteger)
)


def upgrade() -> None:
    """Take the GPUs' time of the day from its sums of use, which begin with the first round."""
    connection = op.get_bind()
    for cluster_id, epoch in connection.execute(sa.select(_CLUSTERS.c.id, _CLUSTERS.c.epoch)).all():
        day = (epoch if epoch.tzinfo else epoch.replace(tzinfo=UTC)).astimezone(UTC).date()
        of_day = (_CAPACITY.c.cluster_id == cluster_id, _CAPACITY.c.day == day)
        known = connection.execute(sa.select(sa.func.sum(_CAPACITY.c.capacity_ms)).where(*of_day)).scalar()
        if known:
            mine = (_SHARES.c.cluster_id == cluster_id, _SHARES.c.day == day)
            true = {'capacity_gpu_seconds': float(known) / 1000.0}
            connection.execute(sa.update(_SHARES).where(*mine, _SHARES.c.capacity_gpu_seconds > true['capacity_gpu_seconds']).values(true))


def downgrade() -> None:
    """The sums stay as they are."""
