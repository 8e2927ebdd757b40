"""The policies of Maat as constructors with their knobs: `maat.policies.Sia(p=-1)`.

A policy that is registered is here by the name of its class. `Own` names one of yours.

>>> import maat
>>> maat.policies.Sia(p=-1, round_seconds=120)
sia(p=-1, round_seconds=120)
>>> maat.policies.Sia(power=-1)  # doctest: +ELLIPSIS
Traceback (most recent call last):
...
maat.scheduling.errors.ParameterError: power: is no parameter of sia (got -1). Use one of: p, ...
>>> print(maat.policies.Fifo.__doc__.splitlines()[0])
First come, first served; each job gets the GPUs that it requests and keeps them.
"""

from __future__ import annotations

from maat.library.policies import CONSTRUCTORS, Own, PolicyConstructor

__all__ = ["Own", *CONSTRUCTORS]  # noqa: PLE0604  # the names of classes


def __getattr__(name: str) -> PolicyConstructor:
    if name not in CONSTRUCTORS:
        known = ", ".join(__all__)
        raise AttributeError(f"maat.policies has no {name}. Use one of: {known}.")
    return CONSTRUCTORS[name]


def __dir__() -> list[str]:
    return list(__all__)
