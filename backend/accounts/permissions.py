"""The permissions, and which role has which.

The users table holds each user's role; identity.py identifies the user of a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Permission(StrEnum):
    JOBS_READ = "jobs:read"
    JOBS_SUBMIT = "jobs:submit"
    JOBS_CANCEL = "jobs:cancel"
    JOBS_RUN_COMMANDS = "jobs:run-commands"  # only where the operator allows commands
    CLUSTERS_READ = "clusters:read"
    CLUSTERS_WRITE = "clusters:write"
    ROUNDS_READ = "rounds:read"
    SIMULATIONS_READ = "simulations:read"
    SIMULATIONS_RUN = "simulations:run"
    MEASUREMENTS_READ = "measurements:read"
    MEASUREMENTS_WRITE = "measurements:write"
    MODELS_READ = "models:read"
    TOKENS_MANAGE = "tokens:manage"  # no route yet: `maat token` makes tokens


class Role(StrEnum):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    TENANT_MANAGER = "tenant_manager"
    CLUSTER_ADMIN = "cluster_admin"
    AUDITOR = "auditor"


_READ = frozenset(p for p in Permission if p.value.endswith(":read"))
_SUBMIT = _READ | {
    Permission.JOBS_SUBMIT,
    Permission.JOBS_CANCEL,
    Permission.JOBS_RUN_COMMANDS,
    Permission.SIMULATIONS_RUN,
    Permission.MEASUREMENTS_WRITE,
}

PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: _READ,
    Role.SUBMITTER: _SUBMIT,
    Role.TENANT_MANAGER: _SUBMIT | {Permission.TOKENS_MANAGE},
    Role.CLUSTER_ADMIN: frozenset(Permission),
    Role.AUDITOR: _READ,
}

SEES_ALL_TENANTS = frozenset({Role.CLUSTER_ADMIN, Role.AUDITOR})
ACTS_FOR_TENANT = frozenset({Role.TENANT_MANAGER, Role.CLUSTER_ADMIN})
