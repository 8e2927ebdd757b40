"""ended_jobs_of_tenants: how many jobs of each tenant ended on a day, and how"""

from __future__ import annotations

from datetime import UTC, date, datetime

import sqlalchemy as sa
from alembic import op

revision = '0031'
down_revision = '0030'
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True)
_DAYS = sa.table(
    'ended_days',
    sa.column('cluster_id', sa.String),
    sa.column('day', sa.Date),
    sa.column('counts', _JSON),
    sa.column('of_tenants', _JSON),
)
_CLUSTERS = sa.table(
    'clusters', sa.column('id', sa.String), sa.column('epoch', sa.DateTime(timezone=True))
)
_ENDED = sa.text(
    'SELECT tenant_id, state, reason, formula_version, count(*) FROM job_fairness '
    'WHERE cluster_id = :cluster AND finished_seconds >= :begin AND finished_seconds < :end '
    'GROUP BY tenant_id, state, reason, formula_version'
)


def upgrade() -> None:
    with op.batch_alter_table('ended_days') as batch_op:
        batch_op.add_column(sa.Column('of_tenants', _JSON, nullable=False, server_default='{}'))
    with op.batch_alter_table('ended_days') as batch_op:
        batch_op.alter_column('of_tenants', server_default=None)
    _count(op.get_bind())


def downgrade() -> None:
    op.drop_column('ended_days', 'of_tenants')


def _count(connection) -> None:
    """Count the jobs of the days that were summed up, by tenant: their rows are kept."""
    epochs = dict(connection.execute(sa.select(_CLUSTERS.c.id, _CLUSTERS.c.epoch)).all())
    days = connection.execute(sa.select(_DAYS.c.cluster_id, _DAYS.c.day)).all()
    for cluster, day in days:
        begin = _seconds(epochs[cluster], day)
        asked = {'cluster': cluster, 'begin': begin, 'end': begin + 86_400.0}
        found = connection.execute(_ENDED, asked).all()
        kinds = list(dict.fromkeys(tuple(row[1:4]) for row in found))
        of_tenants = {row[0]: [0] * len(kinds) for row in found}
        for tenant, *kind, number in found:
            of_tenants[tenant][kinds.index(tuple(kind))] = number
        counts = [
            [*kind, sum(numbers[at] for numbers in of_tenants.values())]
            for at, kind in enumerate(kinds)
        ]
        this = (_DAYS.c.cluster_id == cluster, _DAYS.c.day == day)
        connection.execute(
            _DAYS.update().where(*this).values(counts=counts, of_tenants=of_tenants)
        )


def _seconds(epoch: datetime, day: date) -> float:
    epoch = epoch if epoch.tzinfo else epoch.replace(tzinfo=UTC)  # as SQLite has it
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - epoch).total_seconds()
