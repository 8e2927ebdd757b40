"""Holds a policy to every contract, and looks for the smallest round that breaks one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample, Unsatisfiable

from maat.contracts.generated import NOW
from maat.contracts.listing import FAMILIES, FIXED, Contract, Family
from maat.contracts.small_rounds import round_of
from maat.contracts.subject import Subject, Trial
from maat.contracts.time_limit import TimeOver, time_limit
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ContractViolation, MaatError

SHRINK_SECONDS = 10.0
"""How long a smaller counter-example of one contract is looked for, if nothing else is said."""


@dataclass(frozen=True)
class Outcome:
    """Whether a policy keeps a contract. If not: the smallest round found, and what it broke.

    `left_out`: rounds in which it could not be judged, since what the policy decided breaks a rule
    of every round; that is a contract of its own.
    """

    contract: Contract
    trial: Trial | None = None
    broken: str = ""
    left_out: int = 0

    @property
    def is_kept(self) -> bool:
        return not self.broken


class _EnoughTime(BaseException):
    """Ends a search: hypothesis catches no such error."""


class NoAnswer(BaseException):
    """The policy did not answer in a round within its time: nothing more can be checked."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial


def outcomes(
    subject: Subject, *, examples: int, seed: int = 0, shrink_seconds: float = SHRINK_SECONDS
) -> Iterator[Outcome]:
    """Yield the outcome of every contract, in order.

    The same policy, examples and seed give the same outcomes, but for how small a counter-example
    becomes: that takes time. Raises NoAnswer if the policy takes longer than it may.
    """
    search = _Search(subject, examples, seed, shrink_seconds)
    for family in FAMILIES:
        yield from search.of(family)
    nothing = Trial(round_of(Cluster.parse("t4=1x4"), [], now=NOW))
    for contract in FIXED:
        yield Outcome(contract, None, _first_broken(contract, subject, nothing) or "")


@dataclass(frozen=True)
class _Search:
    subject: Subject
    examples: int
    seed: int
    shrink_seconds: float

    def of(self, family: Family) -> Iterator[Outcome]:
        failing: dict[str, Trial] = {}
        left_out: Counter[str] = Counter()

        def look(trial: Trial) -> bool:
            for contract in family.contracts:
                if contract.sentence in failing:
                    continue
                broken = _first_broken(contract, self.subject, trial)
                left_out[contract.sentence] += broken is None
                if broken:
                    failing[contract.sentence] = trial
            return len(failing) == len(family.contracts)

        self._find(family, look, Phase.generate)
        for contract in family.contracts:
            drawn = failing.get(contract.sentence)
            if drawn is None:
                yield Outcome(contract, left_out=left_out[contract.sentence])
                continue
            smallest = self._smallest(contract, family, drawn)
            yield Outcome(contract, smallest, _first_broken(contract, self.subject, smallest) or "")

    def _smallest(self, contract: Contract, family: Family, drawn: Trial) -> Trial:
        """Return the smallest round that breaks the contract, as far as there is time for it."""
        best, until = drawn, time.monotonic() + self.shrink_seconds

        def breaks(trial: Trial) -> bool:
            nonlocal best
            if time.monotonic() > until:
                raise _EnoughTime
            is_broken = bool(_first_broken(contract, self.subject, trial))
            if is_broken and _size(trial) <= _size(best):
                best = trial
            return is_broken

        with suppress(_EnoughTime):
            self._find(family, breaks, Phase.generate, Phase.shrink)
        return best

    def _find(self, family: Family, condition: Callable[[Trial], bool], *phases: Phase) -> None:
        """Draw rounds until one meets the condition, which keeps what it sees."""
        chosen = settings(
            max_examples=max(int(self.examples * family.share), 1),
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        )
        with suppress(NoSuchExample, Unsatisfiable):
            find(family.rounds(), condition, settings=chosen, random=Random(self.seed))


def _size(trial: Trial) -> tuple[int, int, int]:
    round_input = trial.round_input
    gpus = round_input.cluster.gpu_count
    return len(round_input.jobs), gpus, len(round_input.limits) + len(round_input.quotas)


def _first_broken(contract: Contract, subject: Subject, trial: Trial) -> str | None:
    """Return the first sentence of what breaks the contract; empty if nothing does.

    None: it cannot be judged.
    """
    try:
        with time_limit(subject.answer_seconds):
            return next(contract.broken(subject, trial), "")
    except TimeOver:
        raise NoAnswer(trial) from None
    except ContractViolation:
        return None
    except MaatError as failed:
        return str(failed)
    except Exception as error:  # of the policy, or of what its answer led to
        return f"it ends with {type(error).__name__}: {error}"
