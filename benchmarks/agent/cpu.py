"""What the agent in a training script costs and gets right: real attempts, on CPUs with gloo."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from benchmarks.table import Cell, Figures
from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Limits, Spec

Script = Literal["child", "gpu_child", "noise"]  # modules beside this one, each run by an attempt

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 900.0
STOP_SECONDS = 30.0
SHAPES = ((512, 512), (1024, 512), (2048, 256))  # width of the layers, samples of a replica
WIDTHS = (512, 1024, 2048)
STEPS = 96
KILLED_AT = 20
KEEP_MEMORY = {
    # glibc returns freed memory to the kernel, and the next step pays to get it back zeroed: up to
    # a tenth of a step. These limits keep the memory, so that no measurement pays for another.
    "MALLOC_TRIM_THRESHOLD_": str(2**36),
    "MALLOC_MMAP_THRESHOLD_": str(2**35),
}
BY_SOCKET = {
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_P2P_DISABLE": "1",
    "NCCL_IB_DISABLE": "1",
}


class Runs:
    """Attempts of one job, in a folder.

    `on_gpu`: all replicas are on the one GPU of this machine, as if each were on its own node; NCCL
    is to speak by sockets then. Otherwise they see none.
    """

    def __init__(self, folder: Path, *, on_gpu: bool = False) -> None:
        self._folder, self._count, self._on_gpu = folder, 0, on_gpu

    def attempt(
        self,
        ranks: int,
        *,
        module: Script = "child",
        plan: dict[str, int] | None = None,
        **asked: Any,
    ) -> tuple[list[Any], dict[str, int]]:
        """Run an attempt to its end; return what it wrote, and the exit code of each rank."""
        nodes = [f"here-{rank}" for rank in range(ranks)] if self._on_gpu else ["here"]
        slots = 1 if self._on_gpu else ranks
        self._count += 1
        directory = AttemptDir(str(self._folder / f"attempt-{self._count}"))
        out = self._folder / f"out-{self._count}.jsonl"
        spec = Spec(
            attempt_id=f"att_{self._count}",
            job_id="job_1",
            number=self._count,
            argv=(sys.executable, "-m", f"benchmarks.agent.{module}"),
            cwd=str(ROOT),
            env={
                "ASKED": json.dumps(asked),
                "OUT": str(out),
                **(BY_SOCKET if self._on_gpu else KEEP_MEMORY),
            },
            secret_names=(),
            gpu_type="gpu" if self._on_gpu else "cpu",
            gpus_by_node={node: tuple(range(slots)) for node in nodes},
            gpus_per_replica=1,
            cuda_devices=dict.fromkeys(nodes, ("0",) if self._on_gpu else ()),
            threads=1,
            stop_seconds=STOP_SECONDS,
            limits=Limits(),
            plan=plan,
            checkpoint_directory=str(self._folder / "checkpoints"),
        )
        control.start(directory, spec, token="-", secrets={})  # noqa: S106  (reports to nobody)
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while not directory.has("exit.json"):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{asked} took too long")
                time.sleep(0.02)
        finally:
            control.kill(directory)
        ended = directory.read("exit.json")
        assert ended is not None
        text = out.read_text() if out.exists() else directory.text("rank-0.log")
        lines = [line for line in text.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(directory.text("rank-0.log"))
        return [json.loads(line) for line in lines], ended["codes"]


def measure() -> Iterator[Figures]:
    """Measure; each table comes as soon as it is done."""
    yield _overhead()
    yield _checkpoints()
    yield _noise()
    yield _resized()


def _fresh() -> Runs:
    return Runs(Path(tempfile.mkdtemp(prefix="maat-bench-")))


def _overhead() -> Figures:
    rows: list[dict[str, Cell]] = []
    for replicas in (1, 2):
        for width, batch in SHAPES:
            for optimiser in ("sgd", "adamw"):
                asked = {"width": width, "batch": batch * replicas, "optimiser": optimiser}
                (found,), _ = _fresh().attempt(replicas, measure="overhead", **asked)
                rows.append(
                    {
                        "replicas": replicas,
                        "optimiser": optimiser,
                        "parameters": found["parameters"] / 1e6,
                        "batch": batch,
                        "without": found["without"] * 1e3,
                        "share": 100 * found["share"],
                        "least": 100 * found["least"],
                        "most": 100 * found["most"],
                        "alike": 100 * found["alike"],
                        "every": found["every"],
                    }
                )
    return Figures(
        "agent_overhead",
        "A step with and without the agent",
        {
            "replicas": "replicas",
            "optimiser": "optimiser",
            "parameters": "million parameters",
            "batch": "samples per replica",
            "without": "CPU ms without",
            "share": "more, %",
            "least": "least",
            "most": "most",
            "alike": "without, gradients as views, %",
            "every": "k",
        },
        rows,
        [
            "CPU time of rank 0; one step of each loop, and so on in all orders. Median of 7 "
            "blocks of k steps, at least 30; the least and the most of them. Gradients as views of "
            "what is sent: as the agent has them; with one replica, the first loop once more. "
            "No checkpoint in them; glibc keeps freed memory (KEEP_MEMORY)."
        ],
    )


def _checkpoints() -> Figures:
    rows: list[dict[str, Cell]] = []
    for width in WIDTHS:
        (found,), _ = _fresh().attempt(1, measure="save", width=width)
        rows.append(
            {
                "parameters": found["parameters"] / 1e6,
                "mib": found["bytes"] / 2**20,
                "save": found["save"],
                "restore": found["restore"],
            }
        )
    return Figures(
        "agent_checkpoints",
        "A checkpoint of a model and its AdamW",
        {
            "parameters": "million parameters",
            "mib": "MiB",
            "save": "save, s",
            "restore": "restore, s",
        },
        rows,
        ["Wall time; fsync and SHA-256 included, the latter in both."],
    )


def _noise() -> Figures:
    rows: list[dict[str, Cell]] = []
    for replicas in (1, 2):
        (found,), _ = _fresh().attempt(replicas, module="noise")
        for kind, ratios in found.items():
            rows.append({"optimiser": kind, "replicas": replicas, **ratios})
    return noise_figures("agent_noise", rows)


def noise_figures(name: str, rows: list[dict[str, Cell]]) -> Figures:
    return Figures(
        name,
        "The gradient noise at fixed weights, over the exact one of each sample",
        {
            "optimiser": "optimiser",
            "replicas": "replicas",
            "count": "measurements",
            "exact": "exact noise scale",
            "phi": "noise scale / exact",
            "variance": "variance / exact",
        },
        rows,
    )


def _resized() -> Figures:
    stay, move = _fresh(), _fresh()
    alone, _ = stay.attempt(1, measure="resize", **{"from": 0, "stop_at": -1})
    moved: list[Any] = []
    start = time.monotonic()
    for replicas, stop_at in ((1, 30), (4, 60), (2, -1)):
        begun = moved[-1]["step"] if moved else 0
        found, _ = move.attempt(replicas, measure="resize", **{"from": begun, "stop_at": stop_at})
        moved += found
    seconds = time.monotonic() - start
    apart = max(abs(a["loss"] - b["loss"]) for a, b in zip(alone, moved, strict=True))
    lines, codes = _fresh().attempt(
        2, measure="resize", **{"from": 0, "stop_at": -1, "die_at": KILLED_AT}
    )
    died = next(line["died"] for line in lines if "died" in line)
    return Figures(
        "agent_moves",
        "Moves and losses of replicas",
        {"what": "what", "found": "found"},
        [
            {"what": "1 -> 4 -> 2 replicas: largest difference of a loss", "found": apart},
            {"what": "the same: seconds in all, three starts included", "found": seconds},
            {
                "what": f"a rank killed: seconds until all had ended ({STOP_SECONDS:.0f} allowed)",
                "found": time.time() - died,
            },
            {"what": "the same: exit codes", "found": str(codes)},
        ],
        [f"{STEPS} steps of 64 samples, SGD, against one replica that never moves."],
    )
