"""Problems of fields as a form shows them: the service's sentences, or friendlier ones."""

from __future__ import annotations

from maat.client.errors import FieldProblem

WORDS = {
    "missing": "Fill this in.",
    "string_too_short": "Fill this in.",
    "int_parsing": "Give a whole number.",
    "int_type": "Give a whole number.",
    "int_from_float": "Give a whole number.",
    "float_parsing": "Give a number.",
    "float_type": "Give a number.",
}
SAY_ENOUGH = frozenset(
    {
        "string_too_long",
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "too_short",
        "too_long",
    }
)


def friendly_message(problem: FieldProblem, *, empty_name: str) -> str:
    """The sentence to show; `empty_name` is what to say of a name that was left empty."""
    if problem.code in ("missing", "string_too_short") and problem.field == "name":
        return empty_name
    if problem.code in SAY_ENOUGH and problem.remedy:
        return problem.remedy
    return WORDS.get(problem.code, problem.sentence)
