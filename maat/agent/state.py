"""All that a job must know to go on where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from maat.agent.checkpoint import Checkpoint, check_plain
from maat.agent.data import Position
from maat.agent.noise import NoiseScale
from maat.agent.words import say


@dataclass
class State:
    """Of the training: what the script made, how far it is, and what was learnt of its noise.

    Attributes:
        parts: Whatever has state_dict() and load_state_dict(), by its name in a checkpoint.
        in_epoch: Effective samples of this epoch.
        processed_samples, gained_samples: Samples of all steps since this process began, and their
            effective ones. A checkpoint does not have them.
    """

    parts: dict[str, Any]
    position: Position
    noise: NoiseScale
    epoch_samples: int
    step: int = 0
    epoch: int = 0
    in_epoch: float = 0.0
    processed_samples: float = 0.0
    gained_samples: float = 0.0
    _restored: dict[str, Any] = field(default_factory=dict)

    @property
    def effective_samples(self) -> float:
        return self.epoch * self.epoch_samples + self.in_epoch

    @property
    def epoch_is_over(self) -> bool:
        return self.in_epoch >= self.epoch_samples

    def keep(self, name: str, part: Any) -> None:
        """Add a part; give it what a checkpoint holds of it. Raises TypeError and ValueError."""
        if name in self.parts:
            raise ValueError(f"{name!r} is kept already: give each thing its own name.")
        if not callable(getattr(part, "state_dict", None)) or not callable(
            getattr(part, "load_state_dict", None)
        ):
            raise TypeError(
                f"{name} is a {type(part).__name__}: keep what has state_dict and load_state_dict."
            )
        check_plain(part.state_dict(), name)
        if name in self._restored:
            part.load_state_dict(self._restored.pop(name))
        self.parts[name] = part

    def advance(self, samples: int, initial: int) -> float:
        """Go past a step's samples; return the effective ones. All replicas find the same."""
        taken = self.position.advance(samples)
        gained = self.worth(taken, initial, in_epoch=self.in_epoch)
        self.go_past(taken, gained)
        return gained

    def go_past(self, taken: int, gained: float) -> None:
        """Count a step of `taken` samples that is worth `gained`."""
        self.in_epoch += gained
        self.processed_samples += taken
        self.gained_samples += gained
        self.step += 1

    def worth(self, taken: int, initial: int, *, in_epoch: float) -> float:
        """Return the effective samples of a step of `taken`; an epoch has no more than its own."""
        gained = self.noise.gain(taken, initial) * initial
        return min(gained, self.epoch_samples - in_epoch)

    def end_epoch(self) -> None:
        self.epoch, self.in_epoch = self.epoch + 1, 0.0

    def tensors(self) -> dict[str, Any]:
        state = {name: part.state_dict() for name, part in self.parts.items()}
        random = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            random["cuda"] = torch.cuda.get_rng_state()
        return {"parts": state, "random": random}

    def numbers(self) -> dict[str, Any]:
        position = self.position
        return {
            "step": self.step,
            "epoch": self.epoch,
            "in_epoch": self.in_epoch,
            "data_size": position.size,
            "pass_number": position.pass_number,
            "at": position.at,
            "seed": position.seed,
            "noise": self.noise.as_json(),
        }

    def restore(self, checkpoint: Checkpoint, *, rank: int) -> None:
        """Take over a checkpoint, which any number of replicas may have written."""
        self._restored = dict(checkpoint.state["parts"])
        for name, part in self.parts.items():
            if name in self._restored:
                part.load_state_dict(self._restored.pop(name))
        self.restore_numbers(checkpoint.numbers)
        set_random(checkpoint.state["random"], rank, self.step)

    def restore_numbers(self, numbers: Mapping[str, Any]) -> None:
        """Take over how far the job is, and its noise."""
        self.step, self.epoch = numbers["step"], numbers["epoch"]
        self.position.pass_number, self.position.seed = numbers["pass_number"], numbers["seed"]
        if numbers["data_size"] == self.position.size:
            self.position.at, self.in_epoch = numbers["at"], numbers["in_epoch"]
        else:
            say("the data set has changed its size: this epoch starts from its first sample")
        self.noise.restore(numbers["noise"])


def set_random(random: Mapping[str, Any], rank: int, step: int) -> None:
    """Set the random generators: on rank 0 to the saved state, elsewhere to a seed of this step."""
    if rank == 0:
        torch.set_rng_state(random["cpu"])
        if "cuda" in random and torch.cuda.is_available():
            torch.cuda.set_rng_state(random["cuda"])
    else:
        torch.manual_seed(step * 1_000_003 + rank)
