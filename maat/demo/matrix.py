"""Fills in a table of ratings: factors of its rows and columns, SGD, AdaScale."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from maat.demo.emulated import emulate
from maat.demo.jobs import JOBS, epochs_of

_JOB = JOBS["matrix"]
_USERS, _ITEMS, _TASTES = 400, 300, 6


class Factors(nn.Module):  # type: ignore[misc]
    """The rating of user i for item j: the product of their factors, and both their means."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(_USERS, 8)
        self.items = nn.Embedding(_ITEMS, 8)
        self.user_mean = nn.Embedding(_USERS, 1)
        self.item_mean = nn.Embedding(_ITEMS, 1)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        """(N, 2) users and items -> (N,) ratings."""
        user, item = pairs.unbind(1)
        product = (self.users(user) * self.items(item)).sum(1)
        ratings: torch.Tensor = product + (self.user_mean(user) + self.item_mean(item)).squeeze(1)
        return ratings


def ratings() -> TensorDataset:
    """Return pairs, (samples, 2) users and items, and their ratings, (samples,)."""
    users, items = torch.randn(_USERS, _TASTES), torch.randn(_ITEMS, _TASTES)
    user = torch.randint(0, _USERS, (_JOB.samples,))
    item = torch.randint(0, _ITEMS, (_JOB.samples,))
    liked = (users[user] * items[item]).sum(1) / _TASTES**0.5
    return TensorDataset(torch.stack((user, item), dim=1), liked + 0.5 * torch.randn(_JOB.samples))


def main() -> None:
    torch.manual_seed(3)
    job = maat.agent.start()
    model = emulate(Factors(), "matrix").to(job.device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    loader = DataLoader(ratings(), _JOB.batch_size, shuffle=True)
    model, optimiser, loader = job.adapt(
        model, optimiser, loader, max_batch_size=_JOB.max_batch_size
    )
    for epoch in job.epochs(epochs_of("matrix")):
        for pairs, rated in loader:
            optimiser.zero_grad()
            loss = mse_loss(model(pairs.to(job.device)), rated.to(job.device))
            loss.backward()
            optimiser.step()
            job.log(loss=loss)
        if job.is_first:
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
