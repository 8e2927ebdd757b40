"""The gradient noise scale: how much two batches of one size disagree.

The squared norm of a gradient over b samples is |G|^2 + tr / b on average, with tr the trace of the
covariance of one sample's gradient. So the norms at two sizes give both (McCandlish et al. 2018);
for Adam and its like, of gradients divided by the optimiser's own measure of their size (Pollux).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from maat.agent.environment import BatchPlan
from maat.agent.gradients import GradientWatch
from maat.agent.optimiser import ADAPTIVE, scale_of, torch_optimiser
from maat.agent.replicas import Replicas
from maat.agent.timing import TRUSTED_AFTER, Budget, Moments

_SHARE_REMEMBERED = 0.01  # of the job: its noise grows as it learns
_LONGEST_MEMORY, _SHORTEST_MEMORY = 1000.0, 20.0  # measurements
_MOST_PHI = 1e6  # of initial batch sizes
_MOST_WAITS = 16  # steps that a device may be behind
_LEAST_ADAM_STEPS = 5  # before, Adam's second moments are noise themselves


class Norms(NamedTuple):
    """Mean squared norms of gradients over `small` and over `large` samples."""

    at_small: float
    at_large: float
    small: int
    large: int

    @property
    def trace(self) -> float:
        return (self.at_small - self.at_large) / (1 / self.small - 1 / self.large)

    @property
    def square(self) -> float:
        """Return |G|^2, which may come out negative where noise outweighs it."""
        return (self.large * self.at_large - self.small * self.at_small) / (self.large - self.small)


@dataclass
class NoiseScale:
    """Means of square and trace over a while that is short against the job."""

    data_size: int
    square_sum: float = 0.0
    trace_sum: float = 0.0
    weight: float = 0.0
    count: int = 0

    def add(self, norms: Norms, *, share_of_job: float) -> None:
        """Add a measurement; `share_of_job` was done since the last one."""
        halvings = share_of_job / _SHARE_REMEMBERED
        kept = 0.5 ** min(max(halvings, 1 / _LONGEST_MEMORY), 1 / _SHORTEST_MEMORY)
        # No sample is in two batches of one pass: that alone sets their gradients apart.
        square = norms.square + norms.trace / self.data_size
        self.square_sum = kept * self.square_sum + square
        self.trace_sum = kept * self.trace_sum + norms.trace
        self.weight = kept * self.weight + 1.0
        self.count += 1

    @property
    def square(self) -> float:
        return max(self.square_sum / self.weight, 0.0) if self.weight else 0.0

    @property
    def trace(self) -> float:
        return max(self.trace_sum / self.weight, 0.0) if self.weight else 0.0

    def phi(self, initial: int) -> float:
        """Return the noise scale in samples; 0 until it can be trusted."""
        if self.count < TRUSTED_AFTER or self.trace == 0:
            return 0.0
        return self.trace / max(self.square, self.trace / (_MOST_PHI * initial))

    def gain(self, samples: float, initial: int) -> float:
        """Return how many steps at the initial batch size a step of so many samples is worth."""
        phi = self.phi(initial)
        return samples / initial * (phi + initial) / (phi + samples)

    def as_json(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if name != "data_size"}

    def restore(self, data: Mapping[str, Any]) -> None:
        for name, value in data.items():
            setattr(self, name, value)


class Meter:
    """Measures gradients as they are made: before anything clips them, and only at some steps.

    Two replicas or more: each one's gradient before and after they are averaged, in the buckets in
    which they are sent. One replica: the gradients of two steps in a row; or, if a step has several
    passes, the gradient of the first pass and that of them all, or of the first two passes.

    Attributes:
        loss_scale: What the loss is multiplied by, where the script has a gradient scaler.
        complete: Called with each bucket before it is averaged.
    """

    def __init__(self, replicas: Replicas, *, is_divided: bool = False) -> None:
        """`is_divided`: the loop divides losses by the number of passes, and clips by itself."""
        self._replicas = replicas
        self._moments, self.budget = Moments(replicas.device), Budget()
        self.parameters: list[Any] = []
        self._optimiser: Any = None
        self.is_adaptive = self._knows_size = False
        self.loss_scale: Callable[[], float] | None = None
        self.complete: Callable[[Any], None] = lambda _: None
        self._is_divided, self._scale = is_divided, 1.0
        self._group_by_id: dict[int, Any] = {}
        self._passes = 1
        self._small = self._large = 0
        self._is_measured = False
        self._locals: list[torch.Tensor] = []
        self._totals: list[torch.Tensor] = []
        self._spent: list[tuple[Any, Any]] = []
        self._previous: list[torch.Tensor | None] | None = None
        self._watch: Any = None
        self._watched = 0  # passes
        self._under_way: tuple[Any, torch.Tensor, list[tuple[Any, Any]], int, int] | None = None
        self._ready: Any = None
        self._done: Any = None
        self._waits: deque[tuple[Any, Any]] = deque(maxlen=_MOST_WAITS)

    def watch(self, model: Any, optimiser: Any) -> None:
        """Measure the gradients of a model. With two replicas or more it is a distributed one."""
        self.parameters = [each for each in model.parameters() if each.requires_grad]
        self._optimiser = torch_optimiser(optimiser)
        self.is_adaptive = isinstance(self._optimiser, ADAPTIVE)
        self.loss_scale = scale_of(optimiser)
        if self._replicas.count > 1:
            # torch asks for an argument of this name, and looks at annotations if there are any.
            model.register_comm_hook(None, lambda _, bucket: self.on_bucket(bucket))

    def forget(self) -> None:
        """Forget the last gradient: the next one cannot be compared with it."""
        self._previous = None
        self._ready = self._done = None
        self._waits.clear()

    def drop(self) -> None:
        """Forget what was measured of a step that is not taken."""
        self.forget()
        self._locals, self._totals, self._spent = [], [], []

    def begin(self, plan: BatchPlan, *, is_due: bool) -> None:
        """Make ready for a step of a plan."""
        self._passes = plan.passes
        self._is_measured = is_due and self._can_measure()
        samples = plan.samples(self._replicas.count)
        if self._is_measured or self._previous is not None:
            self._read_scale()
        if self._replicas.count > 1:
            self._small, self._large = samples // self._replicas.count, samples
        elif plan.passes > 1 and self._is_divided:
            self._previous = None
            self._small, self._large = plan.per_gpu, 2 * plan.per_gpu
            if self._is_measured:
                self._look_at(self._on_two_passes, passes=2)
        elif plan.passes > 1:
            self._small, self._large = plan.per_gpu, samples
            if self._is_measured:
                self._look_at(self._on_first_pass, passes=1)
        elif self._is_measured or self._previous is not None:
            self._small, self._large = samples, 2 * samples
            self._look_at(self._on_gradient, passes=1)

    def end_pass(self) -> None:
        """Stop watching gradients, if no later pass of the step is watched."""
        self._watched -= 1
        if self._watch is not None and self._watched <= 0:
            self._watch.remove()
            self._watch = None

    def take_whole(self) -> None:
        """Take the gradient of all passes, of which one replica has the mean only now."""
        is_alone = self._replicas.count == 1 and not self._is_divided
        if self._is_measured and is_alone and self._passes > 1:
            start = self._moments.now()
            gradients = [each.grad if each.requires_grad else None for each in self.parameters]
            self._totals = [self._squared(gradients) / self._scale**2]
            self._spent.append((start, self._moments.now()))

    def end(self) -> Norms | None:
        """End a step; return what was measured at an earlier one, if its numbers are here now."""
        found = self._collected()
        if self._locals and self._totals:
            norms = torch.stack([torch.stack(each).sum() for each in (self._locals, self._totals)])
            work = self._replicas.mean(norms) if self._replicas.count > 1 else None
            self._under_way = (work, norms, self._spent, self._small, self._large)
            self._spent = []
        self._locals, self._totals = [], []
        return found

    def exposed_seconds(self) -> float | None:
        """Return how long the newest step that the device has done waited for synchronisation.

        None if no step was done since the last call. A device works behind the script's back, so
        it may be an earlier step than the one that the script just took.
        """
        if self._ready is not None and self._done is not None:
            self._waits.append((self._ready, self._done))
            self._ready = self._done = None
        found = None
        while self._waits and self._moments.is_past(self._waits[0][1]):
            found = self._moments.seconds(*self._waits.popleft())
        return found

    def on_bucket(self, bucket: Any) -> Any:
        """Average a bucket of gradients over the replicas."""
        self.complete(bucket)
        buffer = bucket.buffer()
        is_measured = self._is_measured
        if is_measured:
            gradients = bucket.gradients() if self.is_adaptive else [buffer]
            sizes = self._sizes(bucket.parameters())
            start = self._moments.now()
            self._locals.append(_squared(gradients, sizes) / self._scale**2)
            self._spent.append((start, self._moments.now()))
        if bucket.is_last():
            self._ready = self._moments.now()
        work = dist.all_reduce(buffer.div_(self._replicas.count), async_op=True)

        def averaged(future: Any) -> Any:
            self._done = self._moments.now()
            if is_measured:
                self._totals.append(_squared(gradients, sizes) / self._scale**2)
                self._spent.append((self._done, self._moments.now()))
            return future.value()[0]

        return work.get_future().then(averaged)

    def _on_first_pass(self, gradients: Sequence[Any]) -> None:
        start = self._moments.now()
        self._locals.append(self._squared(gradients) / self._scale**2)
        self._spent.append((start, self._moments.now()))

    def _on_gradient(self, gradients: Sequence[Any]) -> None:
        start = self._moments.now()
        before, self._previous = self._previous, None
        if before is not None:
            self._compare(before, gradients, self._scale)
        if self._is_measured:
            self._previous = _copies(gradients)
        self._spent.append((start, self._moments.now()))

    def _on_two_passes(self, gradients: Sequence[Any]) -> None:
        start = self._moments.now()
        if self._previous is None:
            self._previous = _copies(gradients)
        else:
            self._compare(self._previous, gradients, self._scale / self._passes)
            self._previous = None
        self._spent.append((start, self._moments.now()))

    def _compare(self, before: Sequence[Any], after: Sequence[Any], scale: float) -> None:
        """Take the norms of two gradients, and of their mean; `scale` is that of the losses.

        The tensors of `before` are ours, and overwritten.
        """
        found = [
            each
            for each in zip(self.parameters, before, after, strict=True)
            if each[1] is not None and each[2] is not None
        ]
        if not found:
            return
        parameters, one, two = (list(each) for each in zip(*found, strict=True))
        sizes = self._sizes(parameters)
        if sizes is not None:
            torch._foreach_div_(one, sizes)
            two = torch._foreach_div(two, sizes)
        small = (_squared(one) + _squared(two)) / 2
        torch._foreach_add_(one, two)
        self._locals.append(small / scale**2)
        self._totals.append(_squared(one) / (2 * scale) ** 2)

    def _look_at(self, hook: Callable[[Sequence[Any]], None], *, passes: int) -> None:
        self._watched = passes
        self._watch = GradientWatch(self.parameters, hook)

    def _read_scale(self) -> None:
        """Read the scale of losses; a gradient at another scale is not compared with."""
        scale = 1.0 if self.loss_scale is None else self.loss_scale()
        if scale != self._scale:
            self._previous = None
        self._scale = scale

    def _collected(self) -> Norms | None:
        if self._under_way is None:
            return None
        work, norms, spent, small, large = self._under_way
        self._under_way = None
        if work is not None:
            work.wait()
        at_small, at_large = norms.tolist()
        self.budget.add_cost(sum(self._moments.seconds(*each) for each in spent))
        if not math.isfinite(at_small + at_large):
            return None
        return Norms(at_small, at_large, small, large)

    def _squared(self, gradients: Sequence[Any]) -> torch.Tensor:
        """Return the squared norm of gradients of all parameters, of which some may be None."""
        found = [
            (parameter, gradient)
            for parameter, gradient in zip(self.parameters, gradients, strict=True)
            if gradient is not None
        ]
        sizes = self._sizes([parameter for parameter, _ in found])
        return _squared([gradient for _, gradient in found], sizes)

    def _can_measure(self) -> bool:
        """Return whether the optimiser knows the size of gradients, if it is one that does."""
        if self.is_adaptive and not self._knows_size:  # asked once: the number may be on the device
            states = [self._optimiser.state.get(each) for each in self.parameters]
            self._knows_size = any(
                state and float(state["step"]) >= _LEAST_ADAM_STEPS for state in states
            )
        return self._knows_size or not self.is_adaptive

    def _sizes(self, parameters: Sequence[Any]) -> Sequence[torch.Tensor] | None:
        """Return what the optimiser divides the gradients of these parameters by.

        Few calls for many tensors: on a GPU, each call costs more than what it computes.
        """
        if not self.is_adaptive:
            return None
        states = [self._optimiser.state.get(each) for each in parameters]
        known = [index for index, state in enumerate(states) if state]
        if not known:
            return [torch.ones_like(each) for each in parameters]
        roots = torch._foreach_sqrt([states[index]["exp_avg_sq"] for index in known])
        groups = [self._group_of(parameters[index]) for index in known]
        steps = _numbers([states[index]["step"] for index in known])
        unbiased = [1 - each["betas"][1] ** step for each, step in zip(groups, steps, strict=True)]
        torch._foreach_div_(roots, [math.sqrt(each) for each in unbiased])
        torch._foreach_add_(roots, [float(each["eps"]) for each in groups])
        of_parameter = dict(zip(known, roots, strict=True))
        return [
            of_parameter[index] if index in of_parameter else torch.ones_like(parameter)
            for index, parameter in enumerate(parameters)
        ]

    def _group_of(self, parameter: Any) -> Any:
        if id(parameter) not in self._group_by_id:
            for group in self._optimiser.param_groups:
                self._group_by_id.update((id(each), group) for each in group["params"])
        return self._group_by_id[id(parameter)]


def _squared(gradients: Sequence[Any], sizes: Sequence[Any] | None = None) -> torch.Tensor:
    """Return the squared norm of all gradients, each divided by its size if there are sizes."""
    if sizes is not None:
        gradients = torch._foreach_div(gradients, sizes)
    norms: torch.Tensor = torch.stack(torch._foreach_norm(gradients)).square().sum()
    return norms


def _copies(gradients: Sequence[Any]) -> list[torch.Tensor | None]:
    found = [index for index, each in enumerate(gradients) if each is not None]
    made = torch._foreach_mul([gradients[index] for index in found], 1.0) if found else ()
    copies = dict(zip(found, made, strict=True))
    return [copies.get(index) for index in range(len(gradients))]


def _numbers(steps: Sequence[Any]) -> list[float]:
    """Return tensors of one number as numbers; of those on a device with one wait for it."""
    if isinstance(steps[0], torch.Tensor) and steps[0].device.type != "cpu":
        numbers: list[float] = torch.stack(list(steps)).tolist()
        return numbers
    return [float(each) for each in steps]
