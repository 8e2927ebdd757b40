"""Notes on a run: what a reader of its figures should know.

Declared conditions, settings without effect, and what a policy or placer lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from maat.scheduling.gpu_places import shares_gpus
from maat.scheduling.lacking import what_has_no_effect, what_is_lacking
from maat.scheduling.parts import Parts
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.registry import Needs
from maat.simulation.scenario import Scenario
from maat.simulation.usable_types import idle_type_notes
from maat.workloads.workloads import Workload

MANY_ROUNDS = 100_000


@dataclass(frozen=True, slots=True)
class PlacerMoves:
    """Restarts by the placer alone, in one run or in several of a policy and placer.

    `by_placer`: restarts of jobs that the policy left as they were and the placer moved;
    `restarts`: all restarts; `jobs`: all jobs.
    """

    policy: str
    placer: str
    by_placer: int
    restarts: int
    jobs: int

    @property
    def prevail(self) -> bool:
        """Whether they are more than half of the restarts, and more than one per job.

        Fewer are an occasional repair of scattered GPUs.
        """
        return self.by_placer > max(self.restarts / 2, self.jobs)


def notes_on(scenario: Scenario) -> tuple[str, ...]:
    """Return the notes on a scenario, as sentences."""
    parts = _parts(scenario)
    return tuple(
        chain(
            scenario.workload.notes,
            _declared(scenario),
            what_is_lacking(
                parts,
                jobs_per_gpu=scenario.cluster.jobs_per_gpu,
                has_scores=_unequal(scenario),
                policy_is_own=scenario.own_policy is not None,
            ),
            what_has_no_effect(
                parts,
                jobs_per_gpu=scenario.cluster.jobs_per_gpu,
                has_interference=scenario.conditions.interference is not None,
                own_policy=scenario.own_policy,
            ),
            _ignored_scores(scenario),
            _unused_penalties(scenario),
            idle_type_notes(scenario),
        )
    )


def notes_on_all(scenarios: Iterable[Scenario]) -> tuple[str, ...]:
    """Return the notes on any of several scenarios, each sentence once."""
    return tuple(dict.fromkeys(note for scenario in scenarios for note in notes_on(scenario)))


def notes_before(workload: Workload, round_seconds: float | None) -> tuple[str, ...]:
    """Return a note if a run will have very many rounds.

    Counts rounds up to the last submission, since the time that jobs run after it is unknown.
    `round_seconds`: None: the policy's own.
    """
    if round_seconds is None or not workload.jobs:
        return ()
    submitted = [job.submit_seconds for job in workload.jobs]
    rounds = (max(submitted) - min(submitted)) / round_seconds
    if rounds < MANY_ROUNDS:
        return ()
    until = (
        f"round_seconds {round_seconds:g} makes {rounds:,.0f} rounds until the last job of "
        f"{workload.name} is submitted"
    )
    return (
        f"{until}, of which those that can change nothing are passed over: "
        "a larger round_seconds takes less time.",
    )


def notes_on_never(
    policy: str, placer: str, *, count: int, jobs: int, because: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return one sentence if jobs can never run: figures of the others say nothing of them.

    `count`: of `jobs` jobs, in one run or several. `because`: why, each reason once.
    """
    if not count:
        return ()
    why = " ".join(because)
    of = f"{count} of {jobs} {'job' if jobs == 1 else 'jobs'}"
    return (f"{of} cannot run under {policy} + {placer}{f': {why}' if why else '.'}",)


def notes_on_clock(rounds: Sequence[int]) -> tuple[str, ...]:
    """Return one sentence if a time limit ended a solver's search.

    `rounds`: for each run, the number of rounds with such a limit.
    """
    hit = sum(many > 0 for many in rounds)
    of_runs = f" of {hit} of {len(rounds)} runs" if len(rounds) > 1 else ""
    return (
        (
            f"The solver's time ran out in {sum(rounds)} rounds{of_runs}: "
            "another machine may get another result.",
        )
        if hit
        else ()
    )


def notes_on_moves(runs: Iterable[PlacerMoves]) -> tuple[str, ...]:
    """Return one sentence for each policy and placer with mostly placer moves."""
    together: dict[tuple[str, str], PlacerMoves] = {}
    for run in runs:
        before = together.get(
            (run.policy, run.placer), PlacerMoves(run.policy, run.placer, 0, 0, 0)
        )
        counts = (
            before.by_placer + run.by_placer,
            before.restarts + run.restarts,
            before.jobs + run.jobs,
        )
        together[run.policy, run.placer] = PlacerMoves(run.policy, run.placer, *counts)
    return tuple(_moved(run) for run in together.values() if run.prevail)


def _moved(run: PlacerMoves) -> str:
    sticky = next(
        (f"the placer {name}" for name in PLACERS.names if name == f"{run.placer}-sticky"),
        "a sticky placer",
    )
    moves = (
        f"{run.by_placer} of {run.restarts} restarts were moves by the placer {run.placer} alone"
    )
    return (
        f"{moves}, of jobs that {run.policy} left as they were: {sticky} leaves them on their GPUs."
    )


def _parts(scenario: Scenario) -> Parts:
    return Parts(
        scenario.policy, scenario.placer, scenario.policy_parameters, scenario.placer_parameters
    )


def _declared(scenario: Scenario) -> Iterator[str]:
    """Conditions that are declared rather than measured, or differ from the trace."""
    given, tuned = scenario.conditions.interference, scenario.conditions.tuned
    parts = _parts(scenario)
    policy = scenario.own_policy or POLICIES.build(parts.policy, parts.policy_parameters)
    shares = scenario.cluster.jobs_per_gpu > 1 and shares_gpus(policy)
    if shares and given is not None:
        yield f"Up to {scenario.cluster.jobs_per_gpu} jobs per GPU, interference: {given.name}."
    if contention := scenario.conditions.network_contention:
        yield (
            f"A job across nodes loses {contention:.0%} of its speed while it shares a node with "
            "another: declared, not measured."
        )
    window = scenario.conditions.measured_jobs
    if window is not None:
        yield f"Figures are of jobs {window} of {len(scenario.workload)}, in order of submission."
    if tuned is not None:
        yield (
            f"Jobs are tuned by the rule {tuned.rule.value}, drawn by the seed: "
            "not the trace's own GPU counts and batch sizes."
        )


def _ignored_scores(scenario: Scenario) -> Iterator[str]:
    if scenario.own_policy is not None:  # it may weigh them: nobody said
        return
    parts = (POLICIES.entry(scenario.policy), PLACERS.entry(scenario.placer))
    if _unequal(scenario) and all(part.needs is not Needs.GPU_SCORES for part in parts):
        yield (
            f"GPUs differ in speed, which neither {scenario.policy} nor {scenario.placer} weighs: "
            "the jobs bear it."
        )


def _unused_penalties(scenario: Scenario) -> Iterator[str]:
    """Penalties for named models that have no job. One for all models is no mistake."""
    penalties = scenario.conditions.locality_penalties
    idle = sorted(set(penalties) - scenario.workload.models)
    if idle and len(penalties) < len(scenario.models):
        yield f"The locality penalty of {', '.join(idle)} counts for nothing: no job is of it."


def _unequal(scenario: Scenario) -> bool:
    return bool(scenario.cluster.scores) or scenario.conditions.variability is not None
