"""Sia's choices on small examples, beginning with the paper's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scheduling.examples import belief, job, round_of, spec, type_belief

from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import sia_configurations
from maat.scheduling.errors import ParameterError
from maat.scheduling.explain import ReasonCode
from maat.scheduling.goodput import BestPlans
from maat.scheduling.job import MemoryLimits
from maat.scheduling.matrix import GoodputMatrix, Pairs
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.sia import RowUnit, ScaleUpBase, Sia, normalised
from maat.scheduling.restart import restart_factor
from maat.scheduling.rounds import Grant, RoundInput
from maat.scheduling.solving.engines import Solver
from maat.simulation.fidelity import FIDELITIES
from maat.vocabulary import Adaptivity


def matrix_from(round_input: RoundInput, goodput: list[list[float]]) -> GoodputMatrix:
    """The matrix of these figures: rows are jobs, columns configurations; 0: no pair."""
    table = sia_configurations(round_input.cluster)
    values = np.array(goodput)
    rows, columns = np.nonzero(values)
    zeros = np.zeros(len(rows), dtype=np.int64)
    plans = BestPlans(values[rows, columns], zeros, zeros, zeros)
    known = np.ones(len(rows), dtype=bool)
    pairs = Pairs(
        rows,
        table.type_index[columns],
        table.gpu_count[columns],
        table.node_count[columns],
        columns,
        known,
        plans,
    )
    return GoodputMatrix(tuple(j.id for j in round_input.jobs), table, pairs)


TABLE_1 = [[1, 1, 2, 3, 4], [2, 4, 1, 2, 3]]  # columns (1,1,A) (1,2,A) (1,1,B) (1,2,B) (1,4,B)


def table_1_round() -> RoundInput:
    return round_of(Cluster.parse("a=1x2,b=1x4"), job(spec("J1")), job(spec("J2")))


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("p", [1.0, -0.5, 0.5, -1.0])
def test_the_papers_table_1_gives_four_of_b_to_the_first_job_and_two_of_a_to_the_second(
    p: float, solver: Solver
) -> None:
    round_input = table_1_round()
    decision = Sia(p=p, solver=solver).decide(round_input, matrix_from(round_input, TABLE_1))
    assert decision.grants == {"J1": Grant("b", 4, node_count=1), "J2": Grant("a", 2, node_count=1)}


@pytest.mark.parametrize("solver", Solver)
def test_table_1_is_worth_eight_besides_what_two_busy_jobs_are_worth(solver: Solver) -> None:
    round_input = table_1_round()
    policy = Sia(p=1.0, idle_penalty=1.1, solver=solver)
    decision = policy.decide(round_input, matrix_from(round_input, TABLE_1))
    assert decision.report.objective == pytest.approx(8 + 2 * 1.1)
    assert decision.report.gap == pytest.approx(0.0, abs=1e-8)


def test_a_row_is_measured_by_its_own_smallest_goodput() -> None:
    round_input = round_of("a=1x2", job(spec("x")), job(spec("y", min_gpus=2)))
    matrix = matrix_from(round_input, [[30.0, 45.0], [0.0, 700.0]])
    names = round_input.cluster.type_names
    assert normalised(matrix.pairs, round_input.jobs, names, RowUnit.FEWEST_GPUS).tolist() == [
        1.0,
        1.5,
        2.0,
    ], "section 3.4"


def row_measures(policy: Sia, round_input: RoundInput) -> dict[tuple[str, str, int], float]:
    """Utility before restarts and fairness, by job, type and GPU count.

    Of the matrix that the policy uses.
    """
    matrix = policy.allocate(round_input).matrix
    assert matrix is not None
    found = normalised(matrix.pairs, round_input.jobs, matrix.table.type_names, policy.row_unit)
    pairs = matrix.pairs
    cells = zip(
        pairs.job.tolist(),
        pairs.gpu_type.tolist(),
        pairs.gpu_count.tolist(),
        found.tolist(),
        strict=True,
    )
    return {
        (round_input.jobs[j].id, matrix.table.type_names[t], count): value
        for j, t, count, value in cells
    }


THREE_KINDS = "t4=2x4,a100=2x8"


def three_kinds_of_job(*, known: bool) -> RoundInput:
    """A rigid job of four GPUs, a hybrid-parallel one, and an adaptive one.

    The second has replicas of four t4 or two a100. t4 is the slowest type for all.
    """
    memory = _memory("t4", "a100")
    believed = belief(t4=0.5, a100=0.1) if known else Belief()
    rigid = spec("rigid", memory=memory, adaptivity=Adaptivity.RIGID, gpu_count=4, batch_size=64)
    hybrid = spec("hybrid", memory=memory, gpus_per_replica={"t4": 4, "a100": 2})
    return round_of(
        THREE_KINDS,
        job(rigid, believed),
        job(hybrid, believed),
        job(spec("adaptive", memory=memory), believed),
    )


@pytest.mark.parametrize("unit", RowUnit)
def test_rows_of_rigid_hybrid_and_adaptive_jobs_begin_at_the_gpus_that_each_needs(
    unit: RowUnit,
) -> None:
    found = row_measures(Sia(row_unit=unit), three_kinds_of_job(known=True))
    least = {
        name: min(value for (job_id, _, _), value in found.items() if job_id == name)
        for name in ("rigid", "hybrid", "adaptive")
    }
    assert least == {"rigid": 4.0, "hybrid": 4.0, "adaptive": 1.0}, (
        "N_min: the request, the GPUs of a replica, one"
    )
    assert [found["rigid", "t4", 4], found["hybrid", "t4", 4], found["adaptive", "t4", 1]] == [
        4.0,
        4.0,
        1.0,
    ]
    assert found["rigid", "a100", 4] > 4.0


@pytest.mark.parametrize("unit", RowUnit)
def test_a_job_of_which_nothing_is_known_counts_the_gpus_that_it_needs_on_each_type(
    unit: RowUnit,
) -> None:
    found = row_measures(Sia(row_unit=unit), three_kinds_of_job(known=False))
    assert found == {
        ("rigid", "t4", 4): 4.0,
        ("rigid", "a100", 4): 4.0,
        ("hybrid", "t4", 4): 4.0,
        ("hybrid", "a100", 2): 2.0,
        ("adaptive", "t4", 1): 1.0,
        ("adaptive", "a100", 1): 1.0,
    }


def test_the_published_code_measures_a_row_by_a_replica_whatever_its_owner_declares_as_least() -> (
    None
):
    known = belief(a=0.5)
    round_input = round_of("a=1x8", job(spec("x", memory=_memory("a"), min_gpus=4), known))
    assert row_measures(Sia(), round_input)["x", "a", 4] == 4.0
    assert row_measures(Sia(row_unit=RowUnit.REPLICA), round_input)["x", "a", 4] == 1.0
    assert FIDELITIES["sia-artifact"].policy_parameters["sia"]["row_unit"] == RowUnit.REPLICA


def test_a_rigid_job_is_not_crowded_out_by_an_adaptive_one_that_could_do_with_less() -> None:
    # On four GPUs the rigid job costs 4^-0.5 and the idle other 1.1, together 1.6; the other on all
    # four costs 0.5 at best, and the idle rigid one 1.1.
    known = belief(a=0.5)
    rigid = spec(
        "rigid", memory=_memory("a"), adaptivity=Adaptivity.RIGID, gpu_count=4, batch_size=64
    )
    grown = job(spec("adaptive", memory=_memory("a")), known, held=(0, 1), started_at=0.0)
    decision = Sia().allocate(round_of("a=1x4", job(rigid, known), grown))
    assert decision.grants == {"rigid": Grant("a", 4, node_count=1)}


def test_scaling_a_jobs_goodput_by_its_unit_changes_nothing() -> None:
    round_input = table_1_round()
    scaled = [TABLE_1[0], [1000.0 * g for g in TABLE_1[1]]]
    assert Sia().decide(round_input, matrix_from(round_input, scaled)).grants == {
        "J1": Grant("b", 4, node_count=1),
        "J2": Grant("a", 2, node_count=1),
    }


def test_a_negative_power_serves_the_worst_off_where_a_positive_one_serves_the_sum() -> None:
    # Four GPUs: one job makes nine times as much of all of them while the other waits (1/3 + 1.1),
    # or each has two (2 / sqrt 2).
    round_input = round_of("a=1x4", job(spec("x")), job(spec("y")))
    goodput = [[1.0, 2.0, 9.0], [1.0, 2.0, 2.0]]
    fair = Sia(p=-0.5).decide(round_input, matrix_from(round_input, goodput)).grants
    greedy = Sia(p=1.0).decide(round_input, matrix_from(round_input, goodput)).grants
    assert fair == {"x": Grant("a", 2, node_count=1), "y": Grant("a", 2, node_count=1)}
    assert greedy == {"x": Grant("a", 4, node_count=1)}


def test_lambda_is_what_leaving_a_job_idle_costs() -> None:
    round_input = round_of("a=1x2", job(spec("x")), job(spec("y")))
    goodput = [[1.0, 8.0], [1.0, 1.0]]
    patient = Sia(p=1.0, idle_penalty=5.0).decide(round_input, matrix_from(round_input, goodput))
    eager = Sia(p=1.0, idle_penalty=7.0).decide(round_input, matrix_from(round_input, goodput))
    assert set(patient.grants) == {"x"}
    assert set(eager.grants) == {"x", "y"}


def test_a_waiting_job_that_may_not_be_preempted_gets_what_it_asks_for_first() -> None:
    rigid = {"adaptivity": Adaptivity.RIGID, "gpu_count": 4, "batch_size": 128}
    others = [job(spec(name), belief(t4=0.1)) for name in ("x", "y", "z")]
    waits = job(spec("stays", preemptible=False, **rigid), belief(t4=0.1))
    found = Sia().allocate(round_of("t4=1x4", *others, waits))
    assert found.grants == {"stays": Grant("t4", 4, node_count=1)}
    assert found.reasons["stays"].primary is ReasonCode.GRANTED
    assert set(
        Sia()
        .allocate(
            round_of("t4=1x4", *others, replace(waits, spec=replace(waits.spec, preemptible=True)))
        )
        .grants
    ) >= {"x", "y"}


def test_such_jobs_are_promised_only_what_nodes_can_hold() -> None:
    rigid = {"adaptivity": Adaptivity.RIGID, "batch_size": 128, "preemptible": False}
    jobs = [
        job(spec(name, gpu_count=count, submitted_at=float(at), **rigid), belief(t4=0.1))
        for at, (name, count) in enumerate((("one", 3), ("two", 3), ("late", 2)))
    ]
    found = Sia().allocate(round_of("t4=2x4", *jobs))
    assert set(found.grants) == {"one", "two"}  # two GPUs are left, each on another node
    assert found.reasons["late"].primary is ReasonCode.FRAGMENTED


def test_of_such_jobs_that_do_not_all_fit_the_earlier_come_first_and_the_others_compete() -> None:
    rigid = {"adaptivity": Adaptivity.RIGID, "batch_size": 128, "preemptible": False}
    late = job(spec("late", submitted_at=9.0, gpu_count=3, **rigid), belief(t4=0.1))
    early = job(spec("early", submitted_at=1.0, gpu_count=2, **rigid), belief(t4=0.1))
    small = job(spec("small", submitted_at=12.0, gpu_count=1, **rigid), belief(t4=0.1))
    found = (
        Sia()
        .allocate(round_of("t4=1x4", late, small, early, job(spec("x"), belief(t4=0.1))))
        .grants
    )
    assert {name: grant.gpu_count for name, grant in found.items()} == {
        "early": 2,
        "small": 1,
        "x": 1,
    }


def test_the_restart_factor_is_that_of_equation_3() -> None:
    ages, restarts, seconds = (
        np.array([1000.0, 1000.0, 100.0, 20.0, 50.0]),
        np.array([0.0, 4.0, 9.0, 0.0, 0.0]),
        np.array([30.0] * 5),
    )
    assert restart_factor(ages, restarts, seconds).tolist() == pytest.approx(
        [1000 / 1030, 880 / 1030, 0.0, 20 / 50, 50 / 80]
    )
    published = restart_factor(ages, restarts, seconds, young_move_freely=True)
    assert published.tolist() == pytest.approx([1000 / 1030, 880 / 1030, 0.0, 1.0, 50 / 80])


def test_a_job_stays_where_a_slightly_better_place_is_not_worth_the_restart() -> None:
    known = belief(a=0.100, b=0.097)
    held = job(
        spec("x", memory=_memory("a", "b"), restart_seconds=250.0, submitted_at=97_000.0),
        known,
        held=(0,),
        started_at=97_000.0,
    )
    free = job(spec("x", memory=_memory("a", "b"), restart_seconds=250.0), known)
    small = "a=1x1,b=1x1"
    assert Sia().allocate(round_of(small, held)).grants["x"].gpu_type == "a"
    assert Sia().allocate(round_of(small, free)).grants["x"].gpu_type == "b"


def test_a_job_moves_where_the_other_place_is_far_better() -> None:
    known = belief(a=1.0, b=0.05)
    held = job(
        spec("x", memory=_memory("a", "b"), submitted_at=97_000.0),
        known,
        held=(0,),
        started_at=97_000.0,
    )
    assert Sia().allocate(round_of("a=1x1,b=1x1", held)).grants["x"].gpu_type == "b"


def test_a_job_in_checkpoint_restore_keeps_what_it_has_at_any_price() -> None:
    known = belief(a=1.0, b=0.05)
    held = job(
        spec("x", memory=_memory("a", "b")), known, held=(0,), restarting=True, started_at=0.0
    )
    assert Sia().allocate(round_of("a=1x1,b=1x1", held)).grants == {
        "x": Grant("a", 1, node_count=1)
    }


def most_gpus(policy: Sia, peak: int, held: tuple[int, ...] = ()) -> int:
    one = job(
        spec("x", memory=_memory("a")),
        belief(peak, a=0.5),
        held=held,
        started_at=0.0 if held else None,
    )
    matrix = policy.allocate(round_of("a=2x8", one)).matrix
    assert matrix is not None
    return int(matrix.pairs.gpu_count.max())


def test_a_running_job_at_most_doubles() -> None:
    assert most_gpus(Sia(), 8, held=(0, 1)) == 4
    assert most_gpus(Sia(scale_up_factor=4.0), 8, held=(0, 1)) == 8


def test_the_published_rule_doubles_the_most_that_a_job_ever_ran_on() -> None:
    assert most_gpus(Sia(scale_up_base=ScaleUpBase.LARGEST), 8, held=(0, 1)) == 16


def test_a_new_job_starts_on_its_smallest_configuration() -> None:
    one = job(spec("x", memory=_memory("a")), Belief({"a": type_belief(0.5)}))
    assert Sia().allocate(round_of("a=2x8", one)).grants == {"x": Grant("a", 1, node_count=1)}


def test_a_job_of_which_nothing_is_known_is_tried_on_one_gpu_of_any_type() -> None:
    matrix = (
        Sia().allocate(round_of("a=2x8,b=1x4", job(spec("x", memory=_memory("a", "b"))))).matrix
    )
    assert matrix is not None
    assert sorted(
        zip(matrix.pairs.gpu_type.tolist(), matrix.pairs.gpu_count.tolist(), strict=True)
    ) == [(0, 1), (1, 1)]


def test_a_strong_scaling_job_keeps_its_batch_size_in_every_configuration() -> None:
    fixed = spec("x", memory=_memory("a"), adaptivity=Adaptivity.STRONG_SCALING, batch_size=64)
    matrix = Sia().allocate(round_of("a=1x8", job(fixed, belief(a=0.5)))).matrix
    assert matrix is not None
    assert set(matrix.pairs.plans.total_batch_size.tolist()) == {64}
    assert matrix.pairs.gpu_count.tolist() == [1, 2, 4, 8]


def test_a_rigid_job_runs_on_the_type_that_serves_it_best() -> None:
    rigid = spec(
        "x", memory=_memory("a", "b"), adaptivity=Adaptivity.RIGID, gpu_count=3, batch_size=96
    )
    assert Sia().allocate(round_of("a=1x4,b=1x4", job(rigid, belief(a=0.5, b=0.05)))).grants == {
        "x": Grant("b", 3, node_count=1)
    }


def test_utilities_may_be_rounded_as_the_published_simulator_does() -> None:
    round_input = round_of("a=1x2", job(spec("x")))
    exact = Sia(p=-0.5).decide(round_input, matrix_from(round_input, [[1.0, 1.01]]))
    rounded = Sia(p=-0.5, utility_decimals=2).decide(
        round_input, matrix_from(round_input, [[1.0, 1.01]])
    )
    assert exact.grants["x"].gpu_count == 2
    assert rounded.utility is not None
    assert rounded.utility.tolist() == pytest.approx([0.1, 0.1])


def test_a_power_of_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"p: makes all configurations equal \(got 0.0\)"):
        POLICIES.build("sia", {"p": 0})


def _memory(*names: str) -> dict[str, MemoryLimits]:
    return {name: MemoryLimits(1, 256) for name in names}


def test_ties_are_left_to_chance_only_where_that_is_asked_for() -> None:
    cluster = Cluster.parse("a=1x1,b=1x1,c=1x1,d=1x1")
    tied = [[1.0, 1.0, 1.0, 1.0]]

    def choices(policy: Sia) -> set[str]:
        rounds = [
            replace(round_of(cluster, job(spec("x"))), round_number=number)
            for number in range(1, 21)
        ]
        return {policy.decide(one, matrix_from(one, tied)).grants["x"].gpu_type for one in rounds}

    assert choices(Sia()) == {"a"}
    assert len(choices(Sia(random_ties=True))) > 1
    assert choices(Sia(random_ties=True)) == choices(Sia(random_ties=True)), (
        "the same seed and round, the same choice"
    )
