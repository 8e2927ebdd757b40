"""What went wrong in a policy, in words.

A round shows them to everybody who sees the cluster. So they name the kind of an error and the
line of the policy, never the error's message: it may quote jobs of other tenants.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection
from pathlib import Path

from maat.scheduling.errors import ContractViolation, InputError, MaatError, PolicyFailed

_HERE = Path(__file__).resolve().parents[2]


def failure_of(policy: str, error: BaseException) -> PolicyFailed:
    """Return the failure that an error in a policy is, with the line of the policy's own code."""
    line = _line_of(error)
    where = "" if line is None else f" in {line}"
    kind = type(error).__name__
    return PolicyFailed(policy, f"raised {kind}{where}", detail=str(error))


def public_words(policy: str, error: Exception, *, job_ids: Collection[str] = ()) -> str:
    """Return what went wrong as a clause whose subject is the policy, without a job's id."""
    match error:
        case PolicyFailed():
            clause = error.clause
        case ContractViolation():
            clause = f"broke a rule of every round: {error}"
        case InputError():
            clause = error.problem.removeprefix(f"{policy} ")
        case MaatError():
            clause = f"could not decide: {type(error).__name__}"
        case _:
            clause = failure_of(policy, error).clause
    return _without_ids(clause, job_ids)


def sentence_of(error: PolicyFailed | ContractViolation) -> str:
    """Return what went wrong as a sentence for everybody: no job's id is in it."""
    if isinstance(error, PolicyFailed):
        return f"The policy {error.policy} {error.clause}."
    return "What the policy or the placer decided breaks a rule of every round."


def _line_of(error: BaseException) -> str | None:
    """Return file and line of the innermost code that is not Maat's; None if all of it is."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if not path.resolve().is_relative_to(_HERE):
            return f"{path.name}, line {frame.lineno}"
    return None


def _without_ids(text: str, job_ids: Collection[str]) -> str:
    if not job_ids:
        return text
    longest_first = sorted(map(re.escape, job_ids), key=len, reverse=True)
    known = rf"(?:the |a )?(?:job )?'?\b(?:{'|'.join(longest_first)})\b'?"
    return re.sub(known, "a job", text)
