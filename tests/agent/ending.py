"""A training job that leaves much to its end, for the tests of how a script ends.

Writes into OUT what happened, a line each.
"""

import atexit
import gc
import io
import json
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent

ASKED = json.loads(os.environ["ASKED"])


def note(what: str) -> None:
    with open(os.environ["OUT"], "a") as out:
        print(what, file=out)


def note_later(what: str) -> None:
    time.sleep(0.3)
    note(what)


class Diary:
    """Refers to itself, so that only Python's search for cycles would end it."""

    def __init__(self) -> None:
        self.me, self.file = self, open("diary.txt", "w")  # noqa: SIM115  (it is never closed)
        self.file.write("not flushed")


def main() -> None:
    atexit.register(lambda: note(f"frozen {gc.get_freeze_count() > 0}"))
    atexit.register(note, "atexit before start")
    job = maat.agent.start()
    atexit.register(note, "atexit after start")
    diary = Diary()
    detached = io.TextIOWrapper(io.BytesIO())
    detached.detach()
    x = torch.randn(256, 4)
    model = torch.nn.Linear(4, 2)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, x[:, :2].argmax(1)), 64, shuffle=True)
    model, optimiser, loader = job.adapt(model, optimiser, loader)
    try:
        for _ in job.epochs(ASKED.get("epochs", 1000)):
            for inputs, labels in loader:
                optimiser.zero_grad()
                cross_entropy(model(inputs), labels).backward()
                optimiser.step()
            if "epochs" not in ASKED:
                os.kill(os.getpid(), signal.SIGTERM)
    except SystemExit:
        if "code" in ASKED:
            sys.exit(ASKED["code"])
        raise
    finally:
        threading.Thread(target=note_later, args=("thread",)).start()
        multiprocessing.Process(target=note_later, args=("child",)).start()
        print("last words", end="", flush=False)
        diary.file.write(", but kept")
        assert detached is not None
        note("finally")
        if ASKED.get("raises"):
            raise RuntimeError("on the way out")


if __name__ == "__main__":
    main()
