"""What a kept report prints of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """When a report was made, its id, its checksum."""

    report_id: str
    made_at: str
    checksum: str
