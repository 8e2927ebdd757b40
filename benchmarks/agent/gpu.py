"""What the agent costs and gets right on a GPU: CUDA, and NCCL between two replicas.

One GPU is enough: NCCL is made to take two replicas on it for two machines, so what they exchange
goes through sockets of this machine. Without a GPU there is nothing to measure.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.agent.cpu import STEPS, Runs, noise_figures
from benchmarks.table import Cell, Figures

OVERHEADS: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "model": "transformer", "optimiser": "adamw", "batch": 64},
    {"replicas": 1, "model": "transformer", "optimiser": "adamw", "batch": 8},
    {"replicas": 1, "model": "transformer", "optimiser": "fused adamw", "batch": 64},
    {"replicas": 1, "model": "convnet", "optimiser": "sgd", "batch": 64},
    {"replicas": 1, "model": "convnet", "optimiser": "sgd", "batch": 8},
    {"replicas": 2, "model": "convnet", "optimiser": "sgd", "batch": 64},
    {"replicas": 2, "model": "convnet", "optimiser": "adamw", "batch": 64},
)
ROOM = 0.08  # of the GPU, for the job that runs out of memory
TOO_MANY = 16384
PASSES = {
    "number": 1,
    "total_batch_size": 64,
    "per_gpu_batch_size": 16,
    "accumulation_steps": 3,
}


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def measure(rows: Sequence[dict[str, Any]] = OVERHEADS) -> Sequence[Figures]:
    """Measure; return nothing where there is no GPU."""
    if not has_gpu():
        return []
    return [_overhead(rows), _noise(), _moves()]


def run(replicas: int, measure: str, **asked: Any) -> Any:
    """Return what one attempt of a fresh job wrote."""
    lines, codes = _fresh().attempt(replicas, module="gpu_child", measure=measure, **asked)
    if set(codes.values()) != {0}:
        raise RuntimeError(f"{measure} ended with {codes}")
    return lines[0]


def _fresh() -> Runs:
    return Runs(Path(tempfile.mkdtemp(prefix="maat-bench-")), on_gpu=True)


def _overhead(asked: Sequence[dict[str, Any]]) -> Figures:
    rows: list[dict[str, Cell]] = []
    device = ""
    for each in asked:
        given = {name: value for name, value in each.items() if name != "replicas"}
        found = run(each["replicas"], "overhead", **given)
        device = found["device"]
        rows.append(
            {
                **{name: each[name] for name in ("replicas", "model", "optimiser", "batch")},
                "parameters": found["parameters"] / 1e6,
                "without": found["without"] * 1e3,
                **{name: 100 * found[name] for name in ("share", "least", "most")},
                "every": found["every"],
                "exposed": None if found["exposed"] is None else 1e3 * found["exposed"],
            }
        )
    return Figures(
        "agent_gpu_overhead",
        f"A step with and without the agent on an {device}",
        {
            "replicas": "replicas",
            "model": "model",
            "optimiser": "optimiser",
            "parameters": "million parameters",
            "batch": "samples per replica",
            "without": "ms without",
            "share": "more, %",
            "least": "least",
            "most": "most",
            "every": "k",
            "exposed": "exposed sync., ms",
        },
        rows,
        [
            "Wall time, bfloat16; blocks of k steps, at least 20, with and without in turns. "
            "Median of the pairs of blocks in 15 s, at least 3; the least and the most of them.",
            "Two replicas share the GPU, and exchange gradients through sockets of one machine.",
        ],
    )


def _noise() -> Figures:
    rows: list[dict[str, Cell]] = [
        {
            "optimiser": kind,
            "replicas": replicas,
            **{k: v for k, v in run(replicas, "noise", optimiser=kind).items() if k != "square"},
        }
        for replicas in (1, 2)
        for kind in ("sgd", "adamw")
    ]
    return noise_figures("agent_gpu_noise", rows)


def _moves() -> Figures:
    stay, move = _fresh(), _fresh()

    def attempt(runs: Runs, replicas: int, **asked: Any) -> tuple[list[Any], dict[str, int]]:
        return runs.attempt(replicas, module="gpu_child", measure="resize", **asked)

    alone, _ = attempt(stay, 1, **{"from": 0, "stop_at": -1})
    moved: list[Any] = []
    start = time.monotonic()
    ends: list[dict[str, int]] = []
    for replicas, stop_at in ((1, 30), (2, 60), (1, -1)):
        begun = moved[-1]["step"] if moved else 0
        found, codes = attempt(move, replicas, **{"from": begun, "stop_at": stop_at})
        moved += found
        ends.append(codes)
    seconds = time.monotonic() - start
    apart = max(abs(a["loss"] - b["loss"]) for a, b in zip(alone, moved, strict=True))
    memory = run(1, "memory", fraction=ROOM, batch=TOO_MANY)
    scaled = run(1, "scaled", plan=PASSES)
    saved = run(1, "save", width=4096)
    told = [
        ("1 -> 2 -> 1 replicas: largest difference of a loss", apart),
        ("the same: seconds in all, three starts included", seconds),
        ("the same: exit codes", str(ends)),
        (f"steps of {TOO_MANY} samples where fewer fit: samples tried", str(memory["sizes"])),
        ("the same: steps taken", memory["steps"]),
        ("float16 with a scaler: loss of the first and last quarter", _pair(scaled)),
        ("the same: noise scale", scaled["noise"]),
        (f"checkpoint of {saved['parameters'] / 1e6:.1f} million parameters, MiB", _mib(saved)),
        ("the same: save, s", saved["save"]),
        ("the same: restore, s", saved["restore"]),
    ]
    return Figures(
        "agent_gpu_moves",
        "Moves, memory, gradient scaler and checkpoints on a GPU",
        {"what": "what", "found": "found"},
        [{"what": what, "found": found} for what, found in told],
        [f"{STEPS} steps of 64 samples, SGD, against one replica that never moves."],
    )


def _pair(scaled: dict[str, float]) -> str:
    return f"{scaled['first']:.3f}, {scaled['last']:.3f}"


def _mib(saved: dict[str, float]) -> float:
    return saved["bytes"] / 2**20
