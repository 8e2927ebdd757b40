"""the interval of rounds is the cluster's alone, no parameter of its policy"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

CLUSTERS = sa.table('clusters', sa.column('id', sa.String()), sa.column('policy_parameters', sa.JSON()))


def upgrade() -> None:
    """The cluster's own round_seconds decided already; the parameter had no effect."""
    rows = op.get_bind().execute(sa.select(CLUSTERS.c.id, CLUSTERS.c.policy_parameters)).all()
    for cluster_id, parameters in rows:
        if 'round_seconds' in (parameters or {}):
            rest = {name: value for name, value in parameters.items() if name != 'round_seconds'}
            op.execute(CLUSTERS.update().where(CLUSTERS.c.id == cluster_id).values(policy_parameters=rest))


def downgrade() -> None:
    """Nothing to restore: the parameter had no effect."""
