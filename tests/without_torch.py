"""Runs a module as without PyTorch: `python tests/without_torch.py MODULE ARGUMENTS`."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from importlib.machinery import ModuleSpec
from typing import Any

_find_spec = importlib.util.find_spec


class Refuses:
    """The first finder of modules: there is no torch."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _found(name: str, package: str | None = None) -> ModuleSpec | None:
    return None if name.partition(".")[0] == "torch" else _find_spec(name, package)


if __name__ == "__main__":
    importlib.util.find_spec = _found
    sys.meta_path.insert(0, Refuses())  # type: ignore[arg-type]
    sys.path[0] = "."  # as `python -m` has it
    module, *sys.argv[1:] = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
