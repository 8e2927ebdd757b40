"""The true speed of a model on GPUs of one type, for figures of step times and goodput."""

from __future__ import annotations

from maat.models.truth import Shape, Truth, gain
from maat.scheduling.errors import InputError
from maat.scheduling.goodput import BatchPlan, plan_for_batch


def filled(count: int, per_node: int) -> Shape:
    """Return the shape of that many GPUs on as few nodes as can be, filled one after the other."""
    whole, rest = divmod(count, per_node)
    return (per_node,) * whole + ((rest,) if rest else ())


def timed_plan(
    truth: Truth, gpu_type: str, shape: Shape, total: int
) -> tuple[BatchPlan, float] | None:
    """Return how a total batch size is run there, and the true seconds of its step.

    None where the model was not measured, or GPUs would have fewer samples than they may.
    """
    count = sum(shape)
    plan = plan_for_batch(
        total,
        replicas=count,
        largest_per_gpu=truth.largest_per_gpu(gpu_type, count),
        largest_total=total,
        accumulate_above=truth.initial_batch_size,
    )
    if plan.per_gpu_batch_size < truth.smallest_per_gpu(gpu_type):
        return None
    try:
        time = truth.step(gpu_type, shape, plan.per_gpu_batch_size)
    except InputError:  # not measured there
        return None
    return plan, time.with_accumulation(plan.accumulation_steps)


def progress(truth: Truth, epoch: int, total: int) -> float:
    """Return the samples of progress of one step in an epoch: EFFICIENCY x M (Pollux eq. 6)."""
    gained = gain(truth.gradient(epoch, total), total / truth.initial_batch_size)
    return truth.initial_batch_size * gained
