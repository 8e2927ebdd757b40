"""Translates numbers into words: a small network, AdamW, the square root of the gain."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from maat.demo.emulated import emulate
from maat.demo.jobs import JOBS, epochs_of

_JOB = JOBS["translate"]
_DIGITS, _LETTERS = 4, 28
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_LETTER = {letter: index for index, letter in enumerate("_ efghinorstuvwxz", start=0)}


class Translator(nn.Module):  # type: ignore[misc]
    """Reads all digits of a number, then writes all letters of its words at once."""

    def __init__(self) -> None:
        super().__init__()
        self.digits = nn.Embedding(10, 16)
        self.mix = nn.Linear(_DIGITS * 16, 192)
        self.letters = nn.Linear(192, _LETTERS * len(_LETTER))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """(N, 4) digits -> (N, 28, letters) logits."""
        mixed = torch.relu(self.mix(self.digits(numbers).flatten(1)))
        logits: torch.Tensor = self.letters(mixed).view(len(numbers), _LETTERS, len(_LETTER))
        return logits


def numbers_in_words() -> TensorDataset:
    """Return numbers, (samples, 4) digits, and their words, (samples, 28) letters."""
    numbers = torch.randint(0, 10, (_JOB.samples, _DIGITS))
    words = [" ".join(_WORDS[digit] for digit in row) for row in numbers.tolist()]
    padded = [[_LETTER[letter] for letter in text.ljust(_LETTERS, "_")] for text in words]
    return TensorDataset(numbers, torch.tensor(padded)[:, :_LETTERS])


def main() -> None:
    torch.manual_seed(2)
    job = maat.agent.start()
    model = emulate(Translator(), "translate").to(job.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(numbers_in_words(), _JOB.batch_size, shuffle=True)
    model, optimiser, loader = job.adapt(
        model, optimiser, loader, max_batch_size=_JOB.max_batch_size
    )
    for epoch in job.epochs(epochs_of("translate")):
        for numbers, words in loader:
            optimiser.zero_grad()
            logits = model(numbers.to(job.device))
            loss = cross_entropy(logits.flatten(0, 1), words.to(job.device).flatten())
            loss.backward()
            optimiser.step()
            job.log(loss=loss)
        if job.is_first:
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
