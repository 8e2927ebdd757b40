"""The part of a form that says under which conditions jobs are simulated.

What is known of jobs beforehand, jobs that are bound, GPUs that jobs share or that are unequal,
nodes that fail, reservations. Simulations and sweeps have it alike.
"""

from frontend.components.conditions.callbacks import register_conditions
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
)
from frontend.components.conditions.values import (
    ERRORS,
    PLACES,
    condition_states,
    conditions_of,
    incomplete_fields,
    reservation_of,
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
    "TUNED",
    "VARIABILITY",
    "condition_states",
    "conditions_fields",
    "conditions_of",
    "fidelity_field",
    "incomplete_fields",
    "register_conditions",
    "reservation_of",
    "reserved",
    "describe",
    "trace_words",
]
