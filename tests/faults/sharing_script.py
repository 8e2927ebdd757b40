"""Trains on an emulated GPU, on which every pass takes XI times as long while another trains there.

Who trains is seen by locks on the files of the folder GPU, which end with their process.
"""

import fcntl
import os
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from maat.demo.emulated import EmulatedGpu

PASS_SECONDS = 0.08


class SharedGpu:
    """The seconds of a pass, by who else is on the GPU."""

    def __init__(self) -> None:
        self._folder, self._slowdown = Path(os.environ["GPU"]), float(os.environ["XI"])
        self._name = f"{os.environ['NAME']}-{os.getpid()}"
        self._mine = (self._folder / self._name).open("w")
        fcntl.flock(self._mine, fcntl.LOCK_EX)

    def seconds(self, _samples: int) -> float:
        return PASS_SECONDS * (self._slowdown if self._is_shared() else 1.0)

    def _is_shared(self) -> bool:
        return any(_is_locked(path) for path in self._folder.iterdir() if path.name != self._name)


def _is_locked(path: Path) -> bool:
    with path.open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    job = maat.agent.start()
    x = torch.randn(256, 8)
    data = TensorDataset(x, x[:, :2].argmax(1))
    model = torch.nn.Linear(8, 2)
    gpu = EmulatedGpu(SharedGpu())  # type: ignore[arg-type]
    model.register_forward_hook(lambda _, inputs, __: gpu.hold(len(inputs[0])))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(data, 32, shuffle=True)
    model, optimiser, loader = job.adapt(model, optimiser, loader, max_batch_size=32, rule="none")
    for _ in job.epochs(int(os.environ["EPOCHS"])):
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = cross_entropy(model(inputs), labels)
            loss.backward()
            optimiser.step()
            job.log(loss=loss)


if __name__ == "__main__":
    main()
