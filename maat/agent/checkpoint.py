"""Checkpoints: whole or not at all, checked before they are used, and by one attempt only.

A checkpoint is a folder `step-000000486` with state.pt (tensors) or what a library wrote,
agent.json (numbers) and DONE (the size and sha256 of each file). The newest two are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

from maat.agent.files import sync
from maat.agent.words import say

KEPT = 2
_FENCE, _DONE, _STATE, _NUMBERS = "fence", "DONE", "state.pt", "agent.json"
_DAMAGED = "damaged-"


class Fenced(Exception):
    """A newer attempt may write checkpoints, and this one may not any more."""


class Checkpoint(NamedTuple):
    """A checkpoint as it was read. `state` is empty if a library wrote it."""

    folder: Path
    state: Mapping[str, Any]
    numbers: Mapping[str, Any]

    def check_writer(self, library: str | None) -> None:
        """Raise ValueError if another library wrote this one; None: a script of its own."""
        wrote = self.numbers.get("library")
        if wrote != library:
            raise ValueError(
                f"{self.folder} was written by {wrote or 'a plain PyTorch loop'}, and is read by "
                f"{library or 'one'}: give MAAT_CHECKPOINT_DIR another folder, or go on with the "
                "script that wrote it."
            )


class Checkpoints:
    """The checkpoints in a folder, as the attempt of this number sees them."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self._number = folder, number
        self.damaged: str | None = None  # what newest() has put aside, and why

    def save(self, step: int, state: Mapping[str, Any], numbers: Mapping[str, Any]) -> int:
        """Write a checkpoint of tensors; return its size in bytes. Raises as save_files does."""
        return self.save_files(
            step, lambda folder: torch.save(dict(state), folder / _STATE), numbers
        )

    def save_files(
        self, step: int, write: Callable[[Path], object], numbers: Mapping[str, Any]
    ) -> int:
        """Write a checkpoint; return its size in bytes.

        `write` puts files into the folder that it is given. Raises Fenced, and OSError if it cannot
        be written; the older ones then stay.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.check_fence()
        final = self.folder / f"step-{step:09d}"
        temporary = self.folder / f".{final.name}.{self._number}.{os.getpid()}"
        try:
            temporary.mkdir(mode=0o700)
            write(temporary)
            (temporary / _NUMBERS).write_text(json.dumps(dict(numbers)))
            found = sorted(temporary.rglob("*"))
            files = {
                path.relative_to(temporary).as_posix(): _seal(path)
                for path in found
                if path.is_file()
            }
            (temporary / _DONE).write_text(json.dumps({"attempt": self._number, "files": files}))
            for path in (*found, temporary / _DONE, temporary):
                sync(path)
            self.check_fence()
            if final.exists():
                # Of the same step: one of an attempt that went on from an older checkpoint.
                shutil.rmtree(final)
            temporary.rename(final)
            sync(self.folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self._remove_old()
        return sum(int(each["bytes"]) for each in files.values())

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that is whole, and put damaged ones aside."""
        for folder in reversed(self._folders()):
            try:
                return self.read(folder.name)
            except Exception as error:  # whatever is wrong with it, an older one may be right
                self.damaged = f"{folder.name} is damaged, and not used: {error!r}"
                say(f"{folder.parent}/{self.damaged}")
                self._put_aside(folder)
        return None

    def read(self, name: str) -> Checkpoint:
        """Return a checkpoint. Raises an error of any kind if it is damaged."""
        folder = self.folder / name
        for file, sealed in json.loads((folder / _DONE).read_text())["files"].items():
            if _seal(folder / file) != sealed:
                raise ValueError(f"{file} is not what DONE says.")
        state: Mapping[str, Any] = {}
        if (folder / _STATE).exists():
            state = torch.load(folder / _STATE, map_location="cpu", weights_only=True)
        return Checkpoint(folder, state, json.loads((folder / _NUMBERS).read_text()))

    def check_fence(self) -> None:
        """Raise Fenced if a newer attempt has the job."""
        try:
            fence = int((self.folder / _FENCE).read_text())
        except FileNotFoundError:  # written at the launch: the script has removed the folder since
            self._write_fence()
            return
        if fence > self._number:
            raise Fenced(f"Attempt {fence} has the job, and this is attempt {self._number}.")

    def _write_fence(self) -> None:
        """Write the fence of this attempt, unless another has done so."""
        if self._number == 0:  # by hand
            return
        new = self.folder / f".{_FENCE}.{self._number}.{os.getpid()}"
        new.write_text(str(self._number))
        with suppress(FileExistsError):
            os.link(new, self.folder / _FENCE)
        new.unlink()

    def _folders(self) -> list[Path]:
        return sorted(self.folder.glob("step-*")) if self.folder.is_dir() else []

    def _remove_old(self) -> None:
        for old in self._folders()[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def _put_aside(self, folder: Path) -> None:
        """Rename a damaged checkpoint: it must not outlive newer ones by its higher step."""
        for old in self.folder.glob(f"{_DAMAGED}*"):
            shutil.rmtree(old, ignore_errors=True)
        folder.rename(folder.with_name(_DAMAGED + folder.name))


def check_plain(value: object, name: str) -> None:
    """Raise TypeError for what a checkpoint could hold but not give back."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            check_plain(each, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value):
            check_plain(each, f"{name}[{index}]")
    elif type(value) not in (bool, int, float, str, type(None)) and not isinstance(
        value, torch.Tensor
    ):
        raise TypeError(
            f"{name} is a {type(value).__module__}.{type(value).__qualname__}, which a checkpoint "
            "cannot give back: keep tensors, numbers, text, lists and dictionaries of them."
        )


def _seal(path: Path) -> dict[str, int | str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}
