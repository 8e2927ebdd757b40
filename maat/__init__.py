"""Maat: a scheduler for deep-learning training jobs on GPU clusters of mixed types.

In a notebook or a script:

>>> import maat
>>> run = maat.simulate(maat.generate("philly", jobs=6, hours=1, seed=1), policy="sia")
>>> run.summary["unfinished"]
0

`maat.scheduling` decides, `maat.simulation` simulates one run, `maat.laboratory` many;
`maat.client` talks to a running service.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maat import figures, policies
    from maat.client import Client
    from maat.library.autoscaling import Autoscaled, autoscale
    from maat.library.comparing import Comparison, compare
    from maat.library.inputs import generate, profiles
    from maat.library.pictures import save_figure
    from maat.library.replaying import Replay, replay
    from maat.library.run import Run, simulate
    from maat.library.sweeping import Swept, sweep
    from maat.library.tables import Table
    from maat.library.tuning import Tuned, tune
    from maat.library.what_if import WhatIf, what_if
    from maat.papers.reproducing import Reproduced, reproduce

__version__ = "0.1.0"

__all__ = [
    "Autoscaled",
    "Client",
    "Comparison",
    "Replay",
    "Reproduced",
    "Run",
    "Swept",
    "Table",
    "Tuned",
    "WhatIf",
    "autoscale",
    "compare",
    "figures",
    "generate",
    "policies",
    "profiles",
    "replay",
    "reproduce",
    "save_figure",
    "simulate",
    "sweep",
    "tune",
    "what_if",
]

# Imported when first used: a training script, which imports maat.agent, needs none of them.
_MODULES = ("figures", "policies")
_WHERE = {
    "Autoscaled": "maat.library.autoscaling",
    "Client": "maat.client",
    "Comparison": "maat.library.comparing",
    "Replay": "maat.library.replaying",
    "Reproduced": "maat.papers.reproducing",
    "Run": "maat.library.run",
    "Swept": "maat.library.sweeping",
    "Table": "maat.library.tables",
    "Tuned": "maat.library.tuning",
    "WhatIf": "maat.library.what_if",
    "autoscale": "maat.library.autoscaling",
    "compare": "maat.library.comparing",
    "generate": "maat.library.inputs",
    "profiles": "maat.library.inputs",
    "replay": "maat.library.replaying",
    "reproduce": "maat.papers.reproducing",
    "save_figure": "maat.library.pictures",
    "simulate": "maat.library.run",
    "sweep": "maat.library.sweeping",
    "tune": "maat.library.tuning",
    "what_if": "maat.library.what_if",
}

if not TYPE_CHECKING:  # a checker knows the names above, and no others

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"maat.{name}")
        if name not in _WHERE:
            raise AttributeError(f"maat has no {name}. It has: {', '.join(__all__)}.")
        return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
