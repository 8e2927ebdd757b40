"""The part of a form that says under which conditions jobs are simulated.

What is known of jobs beforehand, jobs that are bound, GPUs that jobs share or that are unequal,
nodes that fail, reservations. Simulations and sweeps have it alike.
"""

from frontend.components.conditions.address import RESERVATION, asked_by, reservations_in
from frontend.components.conditions.address import held as held_of_address
from frontend.components.conditions.address import takes as takes_of_address
from frontend.components.conditions.callbacks import register_conditions, reservation_list
from frontend.components.conditions.fields import (
    DRAW,
    INTERFERENCE,
    MAX_JOBS_PER_GPU,
    MAX_TUNED_GPUS,
    PROFILING,
    TUNED,
    VARIABILITY,
    conditions_fields,
    fidelity_field,
    fidelity_words,
)
from frontend.components.conditions.values import (
    ERRORS,
    PLACES,
    USUAL,
    VALUES,
    condition_states,
    conditions_of,
    incomplete_fields,
    reservation_of,
    tuned_by_policy,
)
from frontend.components.conditions.words import describe, reserved, trace_words

__all__ = [
    "DRAW",
    "ERRORS",
    "INTERFERENCE",
    "MAX_JOBS_PER_GPU",
    "MAX_TUNED_GPUS",
    "PLACES",
    "PROFILING",
    "RESERVATION",
    "TUNED",
    "USUAL",
    "VALUES",
    "VARIABILITY",
    "asked_by",
    "condition_states",
    "conditions_fields",
    "conditions_of",
    "fidelity_field",
    "fidelity_words",
    "held_of_address",
    "incomplete_fields",
    "register_conditions",
    "reservation_list",
    "reservation_of",
    "reservations_in",
    "takes_of_address",
    "reserved",
    "describe",
    "trace_words",
    "tuned_by_policy",
]
