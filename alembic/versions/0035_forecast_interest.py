"""forecast_interest: forecasts are made of clusters of which somebody reads them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0035'
down_revision = '0034'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('forecast_interest',
    sa.Column('cluster_id', sa.String(40), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['cluster_id'], ['clusters.id'], name=op.f('fk_forecast_interest_cluster_id')),
    sa.PrimaryKeyConstraint('cluster_id', name=op.f('pk_forecast_interest'))
    )


def downgrade() -> None:
    op.drop_table('forecast_interest')
