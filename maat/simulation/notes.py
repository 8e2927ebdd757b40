"""What a reader of a run's figures should know besides them: what is declared, what counts for nothing, what policy or placer lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.registry import Needs
from maat.simulation.scenario import Scenario


def notes_on(scenario: Scenario) -> tuple[str, ...]:
    """Sentences, each once."""
    return tuple(chain(_declared(scenario), _lacking(scenario), _weighed_by_nobody(scenario), _of_no_job(scenario)))


def notes_on_all(scenarios: Iterable[Scenario]) -> tuple[str, ...]:
    """What holds of any of several runs, each sentence once."""
    return tuple(dict.fromkeys(note for scenario in scenarios for note in notes_on(scenario)))


def notes_on_clock(rounds: Sequence[int]) -> tuple[str, ...]:
    """One sentence where a clock ended a solver's search. `rounds`: of each run, in how many of them."""
    hit = sum(many > 0 for many in rounds)
    of_runs = f" of {hit} of {len(rounds)} runs" if len(rounds) > 1 else ""
    return (f"The solver's time ran out in {sum(rounds)} rounds{of_runs}: another machine may get another result.",) if hit else ()


def _declared(scenario: Scenario) -> Iterator[str]:
    """What of the conditions is declared rather than measured, or differs from what the trace says."""
    given, tuned = scenario.conditions.interference, scenario.conditions.tuned
    if scenario.cluster.jobs_per_gpu > 1 and given is not None:
        yield f"Up to {scenario.cluster.jobs_per_gpu} jobs per GPU, interference: {given.name}."
    if tuned is not None:
        yield f"Jobs are tuned by the rule {tuned.rule.value}, drawn by the seed: not the trace's own GPU counts and batch sizes."


def _lacking(scenario: Scenario) -> Iterator[str]:
    for kind, entry in (("policy", POLICIES.entry(scenario.policy)), ("placer", PLACERS.entry(scenario.placer))):
        if entry.needs is Needs.SHARED_GPUS and scenario.cluster.jobs_per_gpu == 1:
            yield f"The {kind} {entry.name} shares GPUs; here a GPU holds one job (jobs_per_gpu 1), so it only orders."
        if entry.needs is Needs.GPU_SCORES and not _unequal(scenario):
            yield f"The {kind} {entry.name} weighs how slow GPUs are; here all of a type are alike (no variability given)."


def _weighed_by_nobody(scenario: Scenario) -> Iterator[str]:
    parts = (POLICIES.entry(scenario.policy), PLACERS.entry(scenario.placer))
    if _unequal(scenario) and all(part.needs is not Needs.GPU_SCORES for part in parts):
        yield f"GPUs differ in speed, which neither {scenario.policy} nor {scenario.placer} weighs: the jobs bear it."


def _of_no_job(scenario: Scenario) -> Iterator[str]:
    """A penalty for every model is asked for at once; one for a few models is meant for their jobs."""
    penalties = scenario.conditions.locality_penalties
    idle = sorted(set(penalties) - scenario.workload.models)
    if idle and len(penalties) < len(scenario.models):
        yield f"The locality penalty of {', '.join(idle)} counts for nothing: no job is of it."


def _unequal(scenario: Scenario) -> bool:
    return bool(scenario.cluster.scores) or scenario.conditions.variability is not None
