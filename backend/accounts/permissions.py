"""The permissions, and which role has which.

The users table holds each user's role; identity.py identifies the user of a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from maat.vocabulary import Role

__all__ = ["ACTS_FOR_TENANT", "PERMISSIONS", "SEES_ALL_TENANTS", "Permission", "Role", "lesser"]


class Permission(StrEnum):
    JOBS_READ = "jobs:read"
    JOBS_SUBMIT = "jobs:submit"
    JOBS_CANCEL = "jobs:cancel"
    JOBS_CHANGE = "jobs:change"  # pause, resume, and what may change while they live
    JOBS_RUN_COMMANDS = "jobs:run-commands"  # only where the operator allows commands
    JOBS_URGENT = "jobs:urgent"  # submit jobs of the highest class of priority, or heavy ones
    JOBS_DISMISS = "jobs:dismiss"  # what is unlikely of what a job reported
    CLUSTERS_READ = "clusters:read"
    CLUSTERS_WRITE = "clusters:write"
    ROUNDS_READ = "rounds:read"
    REPORTS_READ = "reports:read"
    REPORTS_MANAGE = "reports:manage"  # keep and delete reports, and their schedules
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_MANAGE = "webhooks:manage"
    SIMULATIONS_READ = "simulations:read"
    SIMULATIONS_RUN = "simulations:run"
    MEASUREMENTS_READ = "measurements:read"
    MEASUREMENTS_WRITE = "measurements:write"
    MODELS_READ = "models:read"
    ACCOUNT_MANAGE = "account:manage"  # one's own password, sessions and tokens
    USERS_READ = "users:read"
    USERS_MANAGE = "users:manage"
    TENANTS_READ = "tenants:read"
    TENANTS_MANAGE = "tenants:manage"
    TOKENS_MANAGE = "tokens:manage"  # those of others
    AUDIT_READ = "audit:read"
    METRICS_READ = "metrics:read"


_OF_MANAGERS = frozenset(
    {
        Permission.USERS_READ,
        Permission.TENANTS_READ,
        Permission.AUDIT_READ,
        Permission.WEBHOOKS_READ,
    }
)
_OF_OPERATORS = frozenset({Permission.METRICS_READ})
_READ_ALL = frozenset(p for p in Permission if p.value.endswith(":read")) | {
    Permission.ACCOUNT_MANAGE
}
_READ = _READ_ALL - _OF_MANAGERS - _OF_OPERATORS
_SUBMIT = _READ | {
    Permission.JOBS_SUBMIT,
    Permission.JOBS_CANCEL,
    Permission.JOBS_CHANGE,
    Permission.JOBS_RUN_COMMANDS,
    Permission.SIMULATIONS_RUN,
    Permission.MEASUREMENTS_WRITE,
}

PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: _READ,
    Role.SUBMITTER: _SUBMIT,
    Role.TENANT_MANAGER: _SUBMIT
    | _OF_MANAGERS
    | {
        Permission.JOBS_URGENT,
        Permission.JOBS_DISMISS,
        Permission.USERS_MANAGE,
        Permission.TOKENS_MANAGE,
        Permission.REPORTS_MANAGE,
        Permission.WEBHOOKS_MANAGE,
    },
    Role.CLUSTER_ADMIN: frozenset(Permission),
    Role.AUDITOR: _READ_ALL,
}

SEES_ALL_TENANTS = frozenset({Role.CLUSTER_ADMIN, Role.AUDITOR})
ACTS_FOR_TENANT = frozenset({Role.TENANT_MANAGER, Role.CLUSTER_ADMIN})


def lesser(one: Role, other: Role) -> Role:
    """Return the role of the two that may less, or a viewer's if neither holds the other."""
    for less, more in ((one, other), (other, one)):
        if PERMISSIONS[less] <= PERMISSIONS[more] and (
            more in SEES_ALL_TENANTS or less not in SEES_ALL_TENANTS
        ):
            return less
    return Role.VIEWER
