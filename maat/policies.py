"""The policies of Maat as constructors with their knobs: `maat.policies.Sia(p=-1)`.

A policy that is registered is here by the name of its class, also one of an installed distribution.
`Own` names one of yours.

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

from maat.library.policies import BUILT_IN, Own, PolicyConstructor, constructors

__all__ = ["Own", *BUILT_IN]  # noqa: PLE0604  # the names of classes


def __getattr__(name: str) -> PolicyConstructor:
    known = BUILT_IN if name in BUILT_IN or name.startswith("__") else constructors()
    if name not in known:
        names = ", ".join(["Own", *known])
        raise AttributeError(f"maat.policies has no {name}. Use one of: {names}.")
    return known[name]


def __dir__() -> list[str]:
    return ["Own", *constructors()]
