"""The first start: the schema, the local admin, and the demo cluster where the settings ask for one. Running it again changes nothing.

python -m backend.bootstrap_data
"""

from __future__ import annotations

from sqlmodel import Session, select

from backend.accounts.identity import LOCAL_USER
from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.clusters.repository import name_is_taken
from backend.clusters.schemas import ClusterBody
from backend.clusters.service import create_cluster
from backend.database import Database
from backend.migrations import upgrade
from backend.settings import Settings, get_settings

DEFAULT_TENANT = "default"
DEMO_CLUSTER = ClusterBody(name="demo", shape="t4=6x4,rtx=3x8,a100=2x8", policy="sia", placer="whole-node", round_seconds=60.0, speed=30.0)


def ensure_defaults(database: Database, settings: Settings) -> None:
    """Migrate, then add what is missing. Two processes may do so at once."""
    upgrade(database)
    with database.session_scope() as session:
        database.lock_alone(session)
        _ensure_admin(session)
        if settings.demo and not name_is_taken(session, DEMO_CLUSTER.name):
            create_cluster(session, DEMO_CLUSTER)


def _ensure_admin(session: Session) -> None:
    tenant = session.exec(select(Tenant).where(Tenant.name == DEFAULT_TENANT)).first() or Tenant(name=DEFAULT_TENANT)
    session.add(tenant)
    session.flush()
    if session.exec(select(User).where(User.name == LOCAL_USER)).first() is None:
        session.add(User(name=LOCAL_USER, tenant_id=tenant.id, role=Role.CLUSTER_ADMIN.value))
        session.flush()


def main() -> None:
    settings = get_settings()
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()


if __name__ == "__main__":
    main()
