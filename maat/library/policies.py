"""Policies as a user names them: by name, with knobs, or their own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maat.laboratory.setup import OWN_PLACER
from maat.library.conditions import round_seconds_of
from maat.scheduling.errors import InputError
from maat.scheduling.own.policy import OwnPolicy
from maat.scheduling.parameters import parameters_of
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, admitted, suiting_placer
from maat.scheduling.protocols import Policy
from maat.scheduling.registry import Entry
from maat.simulation.tuned_jobs import TunedJobs, read_tuned, shown_tuned

GivenPolicy = Any
"""A name, `module:Class`, `maat.policies.Sia(p=-1)`, a policy, its class, or a function."""


@dataclass(frozen=True)
class ChosenPolicy:
    """A policy that is to decide: a registered one with knobs, or an own one.

    `round_seconds`: its own interval of rounds; None: that of the conditions. `placer`: the one
    that suits it. `own`: what decides, if no registry has it. `tuned`: how its jobs are tuned;
    None: as the conditions say.
    """

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    round_seconds: float | None = None
    own: Policy | None = None
    tuned: TunedJobs | None = None

    @property
    def placer(self) -> str:
        return suiting_placer(self.name) if self.own is None else OWN_PLACER

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self.parameters.items()]
        if self.round_seconds is not None:
            shown.append(f"round_seconds={self.round_seconds:g}")
        if self.tuned is not None:
            shown.append(f"tuned={shown_tuned(self.tuned)!r}")
        return f"{self.name}({', '.join(shown)})"


class PolicyConstructor:
    """Makes a registered policy with these knobs: `maat.policies.Sia(p=-1)`.

    Its signature has the knobs; its documentation says what each is.
    """

    def __init__(self, entry: Entry[Policy]) -> None:
        self._entry = entry
        self.__name__ = entry.where.partition(":")[2]

    def __call__(
        self, *, round_seconds: float | None = None, tuned: str | None = None, **knobs: object
    ) -> ChosenPolicy:
        """Return the policy. Raises ParameterError, which names the knob, for a wrong one.

        `round_seconds`: the interval of its rounds; None: that of the run. `tuned`: the rule by
        which its jobs are tuned, such as `any-pair` or `any-pair:64`; None: as the conditions say.
        """
        POLICIES.build(self._entry.name, knobs)
        seconds = None if round_seconds is None else round_seconds_of(round_seconds)
        how = None if tuned is None else read_tuned(str(tuned))
        return ChosenPolicy(self._entry.name, knobs, seconds, tuned=how)

    @property
    def __signature__(self) -> inspect.Signature:
        of_runs = (("round_seconds", None), ("tuned", None))
        named = [*of_runs, *((p.name, p.default) for p in self._entry.parameters)]
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(name, keyword, default=default) for name, default in named]
        )

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        knobs = "".join(f"\n    {p.name}: {p.help}" for p in self._entry.parameters)
        return self._entry.summary + (f"\n\nKnobs:{knobs}" if knobs else "")

    def __repr__(self) -> str:
        return f"maat.policies.{self.__name__}"


BUILT_IN: Mapping[str, PolicyConstructor] = {
    constructor.__name__: constructor for constructor in map(PolicyConstructor, POLICIES.built_in)
}


def constructors() -> Mapping[str, PolicyConstructor]:
    """Return those of all policies by the names of their classes; Maat's own before others."""
    others = [PolicyConstructor(e) for e in POLICIES if e not in POLICIES.built_in]
    return {**BUILT_IN, **{e.__name__: e for e in others if e.__name__ not in BUILT_IN}}


def Own(  # noqa: N802  # beside the classes of others
    policy: GivenPolicy, *, name: str | None = None, round_seconds: float | None = None
) -> ChosenPolicy:
    """Return a policy of your own under a name, with an interval of rounds.

    Args:
        policy: A function of the round's input that returns GPU type and count by job id; or an
            object, or its class, with `allocate(round_input)` that returns this or a `Decision`.
        name: That tables show; by default the function's or the class's.
        round_seconds: Seconds between its rounds; by default its `default_round_seconds`, or 60.

    Raises InputError for what is no policy, or has the name of one of Maat's.

    >>> import maat
    >>> def one_gpu(round_input):
    ...     free = int(round_input.cluster.capacity[0])
    ...     kind = round_input.cluster.type_names[0]
    ...     return {job.id: (kind, 1) for job in round_input.jobs[:free]}
    >>> trace = maat.generate("philly", jobs=4, hours=1, seed=1)
    >>> mine = maat.policies.Own(one_gpu, name="one GPU each", round_seconds=120)
    >>> maat.simulate(trace, cluster="t4=2x4", policy=mine).summary["policy"]
    'one GPU each'
    """
    chosen = read_policy(policy)
    seconds = None if round_seconds is None else round_seconds_of(round_seconds)
    if name is None or chosen.own is None:
        return replace(chosen, round_seconds=seconds)
    decide = chosen.own
    _check_name(name)
    if isinstance(decide, OwnPolicy):
        return ChosenPolicy(name, round_seconds=seconds, own=replace(decide, name=name))
    return ChosenPolicy(name, round_seconds=seconds, own=decide)


def read_policies(given: str | Sequence[GivenPolicy]) -> list[ChosenPolicy]:
    """Return several policies; a text names them with commas between, or is `all`."""
    if given == "all":
        return [ChosenPolicy(name) for name in POLICIES.names]
    several = given.split(",") if isinstance(given, str) else given
    if not isinstance(several, list | tuple):
        several = [several]
    return [read_policy(each) for each in several]


def read_policy(given: GivenPolicy) -> ChosenPolicy:
    """Return what is to decide.

    Raises UnknownNameError for a name that Maat does not have, and InputError for what is no policy
    or has the name of a registered one.
    """
    if isinstance(given, ChosenPolicy):
        return given
    if isinstance(given, str):
        return ChosenPolicy(POLICIES.entry(admitted(given.strip())).name)
    if isinstance(given, PolicyConstructor):
        return given()
    made = _made(given) if isinstance(given, type) else given
    registered = _registered(made)
    return registered if registered is not None else _own(made)


def _made(policy: type) -> object:
    """Return an object of a class. Raises InputError if it cannot be made without arguments."""
    try:
        inspect.signature(policy).bind()
    except TypeError as missing:
        raise InputError(
            f"is a class that needs arguments ({missing})",
            field="policy",
            value=policy.__name__,
            remedy=f"Give an object of it: {policy.__name__}(...).",
        ) from None
    except ValueError:  # a class without a signature, such as one in C
        pass
    return policy()


def _registered(made: object) -> ChosenPolicy | None:
    """Return an instance of a registered policy's class by its name and knobs."""
    where = f"{type(made).__module__}:{type(made).__qualname__}"
    for entry in POLICIES.built_in:
        if entry.where == where:
            known = parameters_of(type(made))
            knobs = {p.name: getattr(made, p.name) for p in known}
            changed = {p.name: knobs[p.name] for p in known if knobs[p.name] != p.default}
            return ChosenPolicy(entry.name, changed)
    return None


def _own(made: Any) -> ChosenPolicy:
    decide = getattr(made, "allocate", None)
    if decide is None and callable(made):
        decide = made
    if decide is None:
        raise InputError(
            "is no policy",
            field="policy",
            value=made,
            remedy="Give a name, maat.policies.Sia(p=-1), a function of the round's input, "
            "or a class with allocate(round_input).",
        )
    name = getattr(made, "name", None) or getattr(made, "__name__", type(made).__name__)
    _check_name(str(name))
    is_whole = decide is not made and all(
        hasattr(made, attribute) for attribute in ("name", "default_round_seconds")
    )
    own: Policy = made if is_whole else OwnPolicy(str(name), made)
    return ChosenPolicy(str(name), own=own)


def _check_name(name: str) -> None:
    if name in POLICIES.names:
        raise InputError(
            "is the name of a policy that Maat has",
            field="policy",
            value=name,
            remedy="Give yours another name.",
        )


def read_placer(given: str | None, policy: ChosenPolicy) -> str:
    """Return the placer's name; None: the one that suits the policy. Raises UnknownNameError."""
    return policy.placer if given is None else PLACERS.entry(str(given).strip()).name
