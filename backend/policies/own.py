"""Own policies that the operator allows: those of installed distributions, and by the settings.

No request is ever a reason to import anything: it may only name what is known by then.
"""

from __future__ import annotations

import logging

from backend.settings import Settings
from maat.scheduling.errors import InputError
from maat.scheduling.policies import POLICIES, admitted

log = logging.getLogger(__name__)


def admit_own_policies(settings: Settings) -> None:
    """Import the policies that the settings name. What cannot be used is logged and left out."""
    for name in settings.own_policies:
        try:
            admitted(name)
        except InputError as why:
            log.error("MAAT_OWN_POLICIES: %s", why)
    for refusal in POLICIES.refused.values():
        log.error("%s", refusal)
