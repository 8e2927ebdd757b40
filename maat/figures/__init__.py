"""Figures: functions from data to a plotly Figure, for pages, notebooks and reports.

They know numbers, texts and colours, no job and no policy. Needs plotly, the extra `maat[plot]`.

>>> import maat
>>> waits = maat.figures.data.Distribution.of([0.5, 1.0, 2.5])
>>> maat.figures.distributions.cdf({"sia": waits}, x="Waiting (hours)").layout.xaxis.title.text
'Waiting (hours)'
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

_MODULES = tuple(sorted(module.name for module in iter_modules(__path__)))

if not TYPE_CHECKING:  # a checker knows the modules, and no others

    def __getattr__(name: str) -> object:
        """Import a module when it is first used: most of them need plotly."""
        if name not in _MODULES:
            raise AttributeError(f"maat.figures has no {name}. It has: {', '.join(_MODULES)}.")
        return import_module(f"maat.figures.{name}")


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
