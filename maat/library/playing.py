"""Plays the runs of an experiment one after the other, under a progress bar."""

from __future__ import annotations

from typing import TypeVar

from maat.laboratory.experiments import Experiment
from maat.library.progress import Bar

Outcome = TypeVar("Outcome")
PERCENT = 100


def play_all(label: str, plan: Experiment[Outcome], *, quiet: bool) -> dict[str, Outcome]:
    """Return the outcome of every run by its name. Raises InputError as the runs do."""
    total, found = PERCENT * len(plan.runs), dict[str, Outcome]()
    with Bar(label, quiet=quiet, total=total) as bar:
        for number, run in enumerate(plan.runs):

            def show(share: float, number: int = number, run: str = run) -> None:
                bar.show(int(PERCENT * (number + share)), total, f"percent of the runs: {run}")

            found[run] = plan.play(run, on_share=show)
    return found
