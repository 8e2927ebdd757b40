"""A queue at the seam that the application offers: what was sent, and no broker."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RememberingQueue:
    """A queue at the seam that the application offers: what was sent, and no broker."""

    sent: list[tuple[str, ...]] = field(default_factory=list)

    def send(self, task: str, *arguments: str) -> None:
        self.sent.append((task, *arguments))

    def waiting(self) -> dict[str, int]:
        return {"rounds": 0, "simulations": len(self.sent)}
