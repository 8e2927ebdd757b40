"""Stops a loss that is a sum over samples: of passes, the mean of its gradients is another one.

A mean over the samples of a pass is what can be averaged. A sum over them, divided by nothing or by
a number that has nothing to do with them, gives each pass the gradient of a smaller step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from maat.agent.passes import Passes
from maat.agent.words import say

_JOINS = ("StackBackward", "CatBackward")
_SAME = ("NegBackward", "CloneBackward", "ToCopyBackward", "ViewBackward", "SqueezeBackward")
_THROUGH = (*_JOINS, *_SAME, "UnsqueezeBackward", "AddBackward", "SubBackward", "RsubBackward")
_BY_ELEMENT = (
    *_THROUGH,
    *("PowBackward", "MulBackward", "DivBackward", "AbsBackward", "ExpBackward", "LogBackward"),
    *("SqrtBackward", "SumBackward", "MeanBackward", "ExpandBackward"),
)
"""Nodes in which a tensor without a gradient is a constant beside weights, and no samples."""
_BENDS = (
    *("Sqrt", "Rsqrt", "Log", "Log1P", "Log2", "Log10", "Exp", "Expm1", "Pow", "Tanh", "Sigmoid"),
    *("Softplus", "Reciprocal"),
)
_BENT_SUMS = ("LinalgVectorNorm", "Norm", "Max", "Min", "Median", "Logsumexp", "Std", "Var")
_SUM = 2  # torch's number for reduction="sum"
_MOST_NODES = 1000
_LOOKS = 50  # losses, in which a mean over tokens is looked for


@dataclass(frozen=True)
class _Term:
    """A part of a loss: a sum, or a mean, with the numbers that it is multiplied and divided by.

    Attributes:
        numel: How many numbers are summed; None if that is not known.
        is_weighted: It is a mean over some number that follows from the samples: of tokens, a mask.
        bent_by: What makes it no multiple of a mean over samples, such as `sqrt`; None if nothing.
    """

    numel: int | None
    is_sum: bool
    factors: tuple[float, ...] = ()
    divisors: tuple[float, ...] = ()
    is_weighted: bool = False
    bent_by: str | None = None


class LossCheck:
    """Looks at each loss on which backward() is called in a step of several passes."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._sizes: Sequence[int] = []
        self._backward: Callable[..., Any] | None = None
        self._numbers: set[tuple[float, ...]] = set()
        self._has_warned = False
        self._looks = 0

    def start(self, sizes: Sequence[int]) -> None:
        """Look at losses from here on; `sizes`: the samples of each pass."""
        self._sizes, self._numbers = sizes, set()
        if self._backward is None:
            self._backward = torch.autograd.backward
            torch.autograd.backward = self._check_and_go_on

    def end(self) -> None:
        if self._backward is not None:
            torch.autograd.backward, self._backward = self._backward, None

    def _check_and_go_on(self, tensors: Any, *arguments: Any, **named: Any) -> Any:
        backward = self._backward
        if self._passes.is_split:
            for each in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
                self._check(each)
        return (backward or torch.autograd.backward)(tensors, *arguments, **named)

    def _check(self, loss: Any) -> None:
        """Raise ScriptError for a sum over the samples of a pass."""
        if loss.grad_fn is None or loss.numel() != 1:
            return
        samples, index = self._sizes[self._passes.index], self._passes.index
        self._looks += 1
        terms = list(_terms(loss.grad_fn, looks_at_weights=self._looks <= _LOOKS))
        bent = [term.bent_by for term in terms if term.bent_by is not None]
        if 0 < len(bent) < samples:  # as many as samples: of each by itself, in a loop over them
            self._stop_bent(bent[0])
        for term in terms:
            if term.is_weighted or (not term.is_sum and (term.numel or 0) % samples):
                self._warn()
            divisors = _divisors_of_sum(term, samples)
            if divisors is None:
                continue
            is_fixed = not divisors or any(each == sum(self._sizes) for each in divisors)
            if index == 0:
                self._numbers.add(divisors)
            if is_fixed or (self._passes.is_last and divisors in self._numbers):
                self._stop(divisors)

    def _warn(self) -> None:
        """Say once what passes cannot make equal to one."""
        if not self._has_warned:
            self._has_warned = True
            say(
                "the loss is a mean over a number that differs between batches, as of tokens or of "
                "a mask: a step of several passes weighs its passes by samples, and gives another "
                "mean than one pass would"
            )

    def _stop_bent(self, name: str) -> None:
        raise self._passes.error(
            f"this loss takes {name} over the samples of a batch, which is no mean over them: the "
            "mean of the passes' gradients is another gradient. Give a mean over the samples of "
            "the batch, as that of squares without its root."
        )

    def _stop(self, divisors: tuple[float, ...]) -> None:
        by = f"is divided by {divisors[0]:g} in each pass" if divisors else "is divided by nothing"
        raise self._passes.error(
            f"this loss is a sum over the samples of a batch that {by}, and the gradients of "
            "passes are averaged: give a mean over the samples of the batch, as by .mean(), "
            "reduction='mean', or / len(x)."
        )


def _divisors_of_sum(term: _Term, samples: int) -> tuple[float, ...] | None:
    """Return what a sum over samples is divided by; None for a mean, or for no sum of them."""
    if not term.is_sum:  # a mean, times its own number of samples
        is_sum = samples > 1 and float(samples) in term.factors
        return term.divisors if is_sum and float(samples) not in term.divisors else None
    if term.numel is None or term.numel % samples:
        return None
    in_sample = term.numel // samples
    for each in term.divisors:
        share = round(each / samples)
        if share > 0 and math.isclose(each, share * samples) and in_sample % share == 0:
            return None
    return term.divisors


def _terms(root: Any, *, looks_at_weights: bool) -> Iterator[_Term]:
    """Yield the sums and means that a loss is made of, as far as they can be told.

    `looks_at_weights`: reads numbers that a device may not have yet, and waits for it.
    """
    left: list[tuple[Any, tuple[float, ...], tuple[float, ...]]] = [(root, (), ())]
    for _ in range(_MOST_NODES):
        if not left:
            return
        node, factors, divisors = left.pop()
        name, children = node.name(), [each for each, _ in node.next_functions if each is not None]
        if name.startswith(_THROUGH):
            left += [(each, factors, divisors) for each in children]
        elif name.startswith("MulBackward") and len(children) == 1:
            left.append((children[0], *_multiplied(_number_of(node), factors, divisors)))
        elif name.startswith("DivBackward") and len(children) == 1:
            number = _number_of(node)
            if node.next_functions[0][0] is None:  # a constant by what is computed
                yield from _bent("a quotient", children)
            elif number is None:
                yield _Term(None, False, is_weighted="Sum" in children[0].name())
            else:
                left.append((children[0], factors, (*divisors, number)))
        elif name.startswith(("MulBackward", "DivBackward")):
            yield from _bent_product(name, children)
        elif name.startswith(_of(_BENDS)):
            yield from _bent(_word(name), children)
        elif name.startswith(_of(_BENT_SUMS)):
            if not _is_of_weights(node):
                yield _Term(None, False, bent_by=_word(name))
        elif name.startswith("DotBackward"):
            if not _is_of_weights(node):
                yield _Term(node._saved_self.numel(), True, factors, divisors)
        elif name.startswith("SumBackward") and children:
            if not node._saved_self_sym_sizes or children[0].name().startswith(_JOINS):
                left.append((children[0], factors, divisors))
            elif not _is_of_weights(children[0]):
                yield _Term(math.prod(node._saved_self_sym_sizes), True, factors, divisors)
        elif name.startswith("MeanBackward"):
            if not _is_of_weights(node):
                yield _Term(_numel_of_mean(node), False, factors, divisors)
        elif "LossBackward" in name and hasattr(node, "_saved_reduction"):
            is_sum = node._saved_reduction == _SUM
            numel = _numel_of(node)
            is_weighted = looks_at_weights and not is_sum and _is_weighted(node, numel)
            yield _Term(numel, is_sum, factors, divisors, is_weighted)


def _multiplied(
    number: float | None, factors: tuple[float, ...], divisors: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if number is None or number == 0:
        return factors, divisors
    if float(number).is_integer():
        return (*factors, number), divisors
    return factors, (*divisors, round(1 / number, 6))


def _is_weighted(node: Any, numel: int | None) -> bool:
    """Return whether a mean is one over a part of what it is given, as without padding."""
    total = getattr(node, "_saved_total_weight", None)
    return isinstance(total, torch.Tensor) and numel is not None and float(total) != numel


def _number_of(node: Any) -> float | None:
    """Return the number of Python by which a node multiplies or divides; None for a tensor."""
    for name in ("_saved_other", "_saved_self"):
        saved = getattr(node, name, None)
        if isinstance(saved, torch.Tensor) and saved.dim() == 0 and saved.device.type == "cpu":
            # torch keeps a number of Python as a tensor that has no say in the type of results.
            small = torch.int32 if saved.dtype == torch.int64 else torch.float32
            is_number = saved.dtype in (torch.float64, torch.int64)
            if is_number and torch.result_type(torch.ones((), dtype=small), saved) == small:
                return float(saved)
    return None


def _numel_of(node: Any) -> int | None:
    saved = getattr(node, "_saved_target", None)
    return saved.numel() if isinstance(saved, torch.Tensor) else None


def _of(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}Backward" for name in names)


def _word(name: str) -> str:
    """Return what a script writes for a node, such as `sqrt` for SqrtBackward0."""
    word = name.partition("Backward")[0].lower()
    return {"linalgvectornorm": "norm"}.get(word, word)


def _bent_product(name: str, children: Sequence[Any]) -> Iterator[_Term]:
    """Yield what is wrong with a product, or a quotient, of two parts of a loss.

    Weights may multiply a mean, as in uncertainties that are learnt.
    """
    if name.startswith("DivBackward"):
        yield from _bent("a quotient", children[1:])
    elif all(_reduces_samples(each) for each in children):
        yield _Term(None, False, bent_by="a product")


def _bent(word: str, children: Sequence[Any]) -> Iterator[_Term]:
    if any(_reduces_samples(each) for each in children):
        yield _Term(None, False, bent_by=word)


def _reduces_samples(node: Any) -> bool:
    """Return whether a part of a loss holds a sum, or a mean, over samples."""
    return any(True for _ in _terms(node, looks_at_weights=False))


def _numel_of_mean(node: Any) -> int | None:
    """Return how many numbers a mean is of; None if those are parts of a loss, or not known."""
    if not hasattr(node, "_saved_self_sym_numel") or node.next_functions[0][0] is None:
        return None
    is_of_parts = node.next_functions[0][0].name().startswith(_JOINS)
    return None if is_of_parts else int(node._saved_self_sym_numel)


def _is_of_weights(root: Any) -> bool:
    """Return whether a number follows from weights alone, as a penalty: samples have no part in it.

    Samples enter where a node that is no arithmetic has an input without a gradient.
    """
    left, seen = [root], set()
    while left:
        node = left.pop()
        if node in seen or node.name().endswith("AccumulateGrad"):
            continue
        seen.add(node)
        inputs = [each for each, _ in node.next_functions]
        is_arithmetic = node.name().startswith(_BY_ELEMENT)
        if len(seen) > _MOST_NODES or (None in inputs and not is_arithmetic):
            return False
        left += [each for each in inputs if each is not None]
    return True
