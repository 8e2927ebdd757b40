"""The options for tuned jobs: of all policies, or of one compared policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import typer

from maat.cli.numbers import whole_option
from maat.scheduling.errors import InputError, ParameterError
from maat.simulation.tuned_jobs import MOST_GPUS, TunedJobs, read_tuned
from maat.vocabulary import MAX_GPUS

TunedRules = Annotated[
    list[str] | None,
    typer.Option(
        "--tuned",
        help="Give jobs well-chosen, fixed GPU counts and batch sizes (50-80 % of the ideal "
        "speed-up): any-pair or best-batch for all policies, or POLICY=RULE for one. "
        "May be repeated.",
    ),
]
TunedGpus = Annotated[
    int | None,
    whole_option(
        "--tuned-gpus",
        least=1,
        most=MAX_GPUS,
        help=f"Maximum number of GPUs that a tuned job asks for; default: {MOST_GPUS}.",
    ),
]


@dataclass(frozen=True)
class Tuning:
    """How jobs are tuned. `of_all` None: not; `by_label`: under one policy, whatever `of_all`."""

    of_all: TunedJobs | None = None
    by_label: Mapping[str, TunedJobs | None] = field(default_factory=dict)

    def check_labels(self, labels: Collection[str]) -> None:
        """Raise ParameterError for a policy that does not run."""
        for label in self.by_label:
            if label not in labels:
                raise ParameterError(
                    "names no policy that runs",
                    field="tuned",
                    value=label,
                    remedy=f"Use one of: {', '.join(labels)}.",
                )


def read_tuning(rules: Sequence[str], most_gpus: int | None) -> Tuning:
    """Read RULE for all policies, or LABEL=RULE for one. Raises InputError."""
    found: dict[str, TunedJobs | None] = {}
    for text in rules:
        label, equals, rule = (part.strip() for part in text.rpartition("="))
        if equals and not label:
            raise ParameterError(
                "has no policy before the =",
                field="tuned",
                value=text,
                remedy=f"Write {rule} for all policies, or for example gavel={rule}.",
            )
        if label in found:
            raise ParameterError(
                "is given twice", field="tuned", value=text, remedy="Give each once."
            )
        found[label] = read_tuned(rule)
    if most_gpus is not None:
        if not any(found.values()):
            raise InputError(
                "limits tuned jobs, and there are none",
                field="tuned_gpus",
                value=most_gpus,
                remedy="Say by which rule (tuned best-batch), or leave it out.",
            )
        found = {at: how and replace(how, most_gpus=most_gpus) for at, how in found.items()}
    return Tuning(found.pop("", None), found)
