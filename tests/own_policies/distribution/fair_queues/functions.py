"""Policies that are functions."""


def few_each(round_input, *, gpus: int = 2):
    """The same few GPUs of the last type for each job in order of submission.

    Args:
        gpus: GPUs of each job.
    """
    kind, free = round_input.cluster.type_names[-1], int(round_input.cluster.capacity[-1])
    return {job.id: (kind, gpus) for job in round_input.jobs[: free // gpus]}


def half_written(round_input, power: float):
    """A knob without a default."""
    return {}
