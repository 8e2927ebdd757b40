"""The NVIDIA GPUs of this machine, as nvidia-smi lists them."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from dataclasses import dataclass

_FIELDS = ("uuid", "name", "memory.total", "mig.mode.current")
_SECONDS = 15.0  # it may load the driver first, which takes some seconds
_BRANDS = {"nvidia", "tesla", "geforce", "quadro"}


class NoGpus(Exception):
    """nvidia-smi is missing, fails, or lists nothing that can be used. The text says which."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU. `uuid` names it to CUDA; `kind` is the word for GPUs like it, such as `rtx-3090`."""

    uuid: str
    kind: str
    memory_gib: float


def has_nvidia_smi() -> bool:
    return shutil.which("nvidia-smi") is not None


def find_gpus() -> list[Gpu]:
    """Return the GPUs in the order of nvidia-smi; those in MIG mode are left out. Raises NoGpus."""
    if not has_nvidia_smi():
        raise NoGpus("There is no nvidia-smi on this machine.")
    query = ["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoGpus(f"nvidia-smi does not answer: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[:500]
        raise NoGpus(f"nvidia-smi ended with {done.returncode}: {said}")
    return gpus_of(done.stdout)


def gpus_of(text: str) -> list[Gpu]:
    """Read what nvidia-smi printed, a GPU to a line. Raises NoGpus."""
    rows = [[word.strip() for word in row] for row in csv.reader(text.splitlines()) if row]
    found = [
        Gpu(row[0], kind_of(row[1]), _gib(row[2]))
        for row in rows
        if len(row) == len(_FIELDS) and row[0].startswith("GPU-") and row[3] != "Enabled"
    ]
    if not found:
        raise NoGpus(f"nvidia-smi lists no GPU that can be used: {text.strip()[:500]!r}")
    return found


def kind_of(name: str) -> str:
    """Return a product's name as a GPU type: `NVIDIA H100 80GB HBM3` is `h100-80gb-hbm3`."""
    words = re.findall(r"[a-z0-9.]+", name.lower())
    return "-".join([word for word in words if word not in _BRANDS] or words)


def _gib(mebibytes: str) -> float:
    return round(float(mebibytes) / 1024, 1)
