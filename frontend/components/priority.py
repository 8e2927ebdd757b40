"""The priority of a job: a field of both forms, and how pages name it."""

from __future__ import annotations

import dash_mantine_components as dmc

from maat.api.jobs import JobBody
from maat.vocabulary import PRIORITIES, PriorityClass, priority_class

_HELP = "Urgent is for tenant managers."


def priority_field(field_id: str) -> dmc.Select:
    field = JobBody.model_fields["priority"]
    return dmc.Select(
        id=field_id,
        label=field.title,
        description=_HELP,
        data=priority_choices(),
        value=str(field.default),
        allowDeselect=False,
        inputWrapperOrder=["label", "input", "description", "error"],
    )


def priority_choices(own: object = None) -> list[dict[str, str]]:
    """Return what the field offers: the classes, and `own`, a number between them."""
    numbers = {PRIORITIES[kind] for kind in PriorityClass}
    if own not in (None, ""):
        numbers.add(int(str(own)))
    return [
        {"value": str(number), "label": priority_words(number).capitalize()}
        for number in sorted(numbers)
    ]


def priority_words(priority: int) -> str:
    """`high`; `high (12)` for a number that is no class's own."""
    kind = priority_class(priority)
    return kind.value if PRIORITIES[kind] == priority else f"{kind.value} ({priority})"
