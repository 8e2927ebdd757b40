"""What the tests of the agent share: torch, attempts that train, and a server they report to."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from report_server import Server
from training_runs import Run

HAS_TORCH = importlib.util.find_spec("torch") is not None
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("needs_torch") and not HAS_TORCH:
            item.add_marker(pytest.mark.skip(reason="torch is not installed: maat[agent]"))


@pytest.fixture(autouse=True)
def _few_objects() -> None:
    """The agent looks through all objects for schedulers: leave out what was there before."""
    gc.freeze()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that takes reports."""
    with Server() as listening:
        yield listening


@pytest.fixture(scope="module")
def new_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Run]]:
    """Return a function that makes jobs of train.py; at the end, kill what is left of them."""
    made: list[Run] = []

    def new(**fields: Any) -> Run:
        made.append(Run(tmp_path_factory.mktemp("job"), **fields))
        return made[-1]

    yield new
    for run in made:
        run.kill()
