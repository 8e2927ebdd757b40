"""Quotas, weights and priority classes: limits of a round, whatever the policy (docs/quotas.md).

tenant_quota.py   what a tenant may hold
rounds.py         decides a round under quotas
teams.py          the jobs of a round by tenant; demand.py: the GPUs that they could use
room.py           the places that they can have
dividing.py       divides the GPUs of contended types; dealing.py: who comes next, by weight
rows.py           makes limits of what was dealt
outcome.py        what a decision made of them; reasons.py tells it to the jobs
"""

from __future__ import annotations

from maat.scheduling.quotas.tenant_quota import TenantQuota, check_quotas

__all__ = ["TenantQuota", "check_quotas"]
