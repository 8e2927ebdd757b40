"""rename the placer packed to packed-sticky, since it lets jobs keep their GPUs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None

CLUSTERS = sa.table(
    'clusters', sa.column('id', sa.String()), sa.column('placer', sa.String()), sa.column('placer_parameters', sa.JSON())
)
HISTORY = [sa.table(name, sa.column('placer', sa.String())) for name in ('rounds', 'simulation_runs')]


def upgrade() -> None:
    """Until now packed was sticky unless its parameter said no, which is now removed."""
    for cluster_id, parameters in _clusters('packed'):
        _set(cluster_id, 'packed' if (parameters or {}).get('sticky') is False else 'packed-sticky', {})
    _rename('packed', 'packed-sticky')


def downgrade() -> None:
    for cluster_id, _ in _clusters('packed'):
        _set(cluster_id, 'packed', {'sticky': False})
    for cluster_id, _ in _clusters('packed-sticky'):
        _set(cluster_id, 'packed', {})
    _rename('packed-sticky', 'packed')


def _clusters(placer: str) -> list[tuple[str, dict[str, object] | None]]:
    found = op.get_bind().execute(sa.select(CLUSTERS.c.id, CLUSTERS.c.placer_parameters).where(CLUSTERS.c.placer == placer))
    return [(row[0], row[1]) for row in found]


def _set(cluster_id: str, placer: str, parameters: dict[str, object]) -> None:
    op.execute(CLUSTERS.update().where(CLUSTERS.c.id == cluster_id).values(placer=placer, placer_parameters=parameters))


def _rename(before: str, after: str) -> None:
    for table in HISTORY:
        op.execute(table.update().where(table.c.placer == before).values(placer=after))
