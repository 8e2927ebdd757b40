"""A training job for the tests of the agent, told by the environment what to do.

Writes into OUT what each step came to: one line of JSON, by rank 0.
"""

import json
import os
import signal
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent


def main() -> None:
    asked = json.loads(os.environ["ASKED"])
    torch.manual_seed(0)
    job = maat.agent.start()
    x = torch.randn(asked.get("size", 1024), 16)
    data = TensorDataset(x, x[:, :4].argmax(1))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    kind = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[asked.get("optimiser", "sgd")]
    optimiser = kind(model.parameters(), lr=asked.get("lr", 0.05))
    raw = model
    loader = DataLoader(data, 64, shuffle=True, num_workers=asked.get("workers", 0))
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.7)
    model, optimiser, loader = job.adapt(
        model, optimiser, loader, scheduler, max_batch_size=1024, rule=asked.get("rule", "none")
    )
    steps = job._training.state
    for epoch in job.epochs(asked.get("epochs", 3)):
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = cross_entropy(model(inputs), labels)
            loss.backward()
            optimiser.step()
            job.log(loss=loss)
            time.sleep(asked.get("pause", 0.0))
            if job.is_first:
                with torch.no_grad():
                    whole = cross_entropy(raw(x), data.tensors[1]).item()
                said = {"step": steps.step, "epoch": epoch, "loss": whole, "batch": len(inputs)}
                with Path(os.environ["OUT"]).open("a") as out:
                    print(json.dumps(said), file=out)
            is_last = job._replicas.rank == job._replicas.count - 1
            if is_last and steps.step == asked.get("stop_at"):
                os.killpg(0, signal.SIGTERM)  # the loader's workers too
        scheduler.step()
    print("done", steps.step, flush=True)


if __name__ == "__main__":
    main()
