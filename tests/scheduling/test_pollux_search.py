"""Pollux's search: its formulas, and the rules that its repair keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from maat.scheduling.arrays import IntArray
from maat.scheduling.policies.pollux.moves import repair
from maat.scheduling.policies.pollux.problem import (
    Quota,
    SearchProblem,
    fitness,
    power_mean,
    speedups,
)
from maat.scheduling.policies.pollux.search import SearchOptions, improved, search


@st.composite
def problems(draw: DrawFn) -> SearchProblem:
    """Up to six jobs on up to five uneven nodes.

    Some are rigid, some need a multiple, some are bound to a few nodes, some have a quota.
    """
    jobs, nodes = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    room = rng.integers(0, 9, size=nodes)
    most = max(int(room.sum()), 1)
    count = np.arange(most + 1)
    allowed = np.array([_some_counts(rng, count) for _ in range(jobs)])
    speedup = np.where(
        allowed[:, :, None],
        rng.random((jobs, 1, 2)) * count[None, :, None] ** rng.random((jobs, 1, 2)),
        0.0,
    )
    quotas = (
        (Quota(rng.random(jobs) < 0.5, rng.random(nodes) < 0.7, int(rng.integers(0, 5))),)
        if draw(st.booleans())
        else ()
    )
    return SearchProblem(
        room=room,
        most_on_node=np.where(rng.random((jobs, nodes)) < 0.8, room, 0).astype(np.int32),
        speedup=speedup,
        allowed=allowed,
        present=rng.integers(0, 3, size=(jobs, nodes)).astype(np.int32),
        change_factor=rng.random(jobs),
        taken=rng.random(nodes) < 0.2,
        quotas=quotas,
        p=draw(st.sampled_from((-1.0, -10.0, 0.0, 1.0))),
        most_nodes=draw(st.sampled_from((1, 2, 16))),
    )


def _some_counts(rng: np.random.Generator, count: IntArray) -> np.ndarray:
    allowed = (
        (count % rng.integers(1, 4) == 0) & (count >= rng.integers(0, 3))
        if rng.random() < 0.7
        else count == rng.integers(1, 9)
    )
    allowed[0] = True
    return np.asarray(allowed)


def check_rules(problem: SearchProblem, individual: IntArray) -> None:
    """Every rule by plain loops."""
    for j, row in enumerate(individual):
        assert problem.allowed[j, row.sum()]
        assert (row <= problem.most_on_node[j]).all()
        assert np.count_nonzero(row) <= problem.most_nodes
    for n in range(individual.shape[1]):
        assert individual[:, n].sum() <= problem.room[n]
        spanning = [j for j, row in enumerate(individual) if row[n] and np.count_nonzero(row) > 1]
        assert len(spanning) + int(problem.taken[n]) <= 1
    for quota in problem.quotas:
        assert individual[np.ix_(quota.jobs, quota.nodes)].sum() <= quota.places


@settings(max_examples=60)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_repair_makes_any_population_keep_every_rule_and_leaves_it_so(
    problem: SearchProblem, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    wild = rng.integers(0, 7, size=(8, *problem.present.shape)).astype(np.int32)
    repaired = repair(problem, wild, rng)
    for individual in repaired:
        check_rules(problem, individual)
    assert (repaired <= wild).all(), "repair only takes away"
    assert (repair(problem, repaired, rng) == repaired).all()


@settings(max_examples=40)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_a_search_keeps_the_rules_beats_what_it_started_from_and_knows_its_ceiling(
    problem: SearchProblem, seed: int
) -> None:
    start = (
        np.random.default_rng(seed)
        .integers(0, 4, size=(3, *problem.present.shape))
        .astype(np.int32)
    )
    found = search(problem, start, options=SearchOptions(10, 6, 6), rng=np.random.default_rng(seed))
    for individual in found.population:
        check_rules(problem, individual)
    assert (np.diff(found.fitness) < 0).all(), "best first, each fitness once"
    assert found.fitness == pytest.approx(fitness(problem, found.population))
    assert found.fitness[0] <= problem.ceiling * (1 + 1e-9)
    kept = repair(problem, problem.present[None], np.random.default_rng(seed))
    if (kept[0] == problem.present).all():
        assert found.fitness[0] >= fitness(problem, kept)[0]


@settings(max_examples=40)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_fitness_is_the_power_mean_of_discounted_speedups(
    problem: SearchProblem, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    population = repair(
        problem, rng.integers(0, 5, size=(4, *problem.present.shape)).astype(np.int32), rng
    )
    for individual, value, by_job in zip(
        population, fitness(problem, population), speedups(problem, population), strict=True
    ):
        terms = []
        for j, row in enumerate(individual):
            gained = problem.speedup[j, row.sum(), int(np.count_nonzero(row) > 1)]
            gained *= 1.0 if (row == problem.present[j]).all() else problem.change_factor[j]
            assert by_job[j] == pytest.approx(gained)
            terms.append(gained + problem.least_speedup)
        expected = (
            np.exp(np.mean(np.log(terms)))
            if problem.p == 0
            else np.mean(np.power(terms, problem.p)) ** (1 / problem.p)
        )
        assert value == pytest.approx(expected)


def test_a_power_mean_of_very_small_values_does_not_vanish() -> None:
    assert power_mean(np.array([1e-40, 1e-40]), -10.0) == pytest.approx(1e-40)
    assert power_mean(np.zeros((3, 0)), -1.0).tolist() == [0, 0, 0]


def even(jobs: int, nodes: int, most: int, **changes: object) -> SearchProblem:
    """Jobs whose goodput is the square root of their GPUs, a tenth less across nodes.

    None holds anything, and moving is free.
    """
    count = np.arange(most + 1)
    speedup = np.sqrt(count)[None, :, None] * np.array([1.0, 0.9])
    return replace(
        SearchProblem(
            room=np.full(nodes, 4),
            most_on_node=np.full((jobs, nodes), 4, dtype=np.int32),
            speedup=np.repeat(speedup, jobs, axis=0),
            allowed=np.ones((jobs, most + 1), dtype=bool),
            present=np.zeros((jobs, nodes), dtype=np.int32),
            change_factor=np.ones(jobs),
            taken=np.zeros(nodes, dtype=bool),
        ),
        **changes,  # type: ignore[arg-type]
    )


def test_alike_jobs_share_the_nodes_evenly_and_none_is_split() -> None:
    problem = even(4, 4, 16)
    found = search(
        problem, problem.present[None], options=SearchOptions(), rng=np.random.default_rng(0)
    )
    assert sorted(map(tuple, found.population[0].tolist())) == sorted(
        map(tuple, (4 * np.eye(4, dtype=int)).tolist())
    )


def test_without_interference_avoidance_two_jobs_may_span_the_same_nodes() -> None:
    split = np.array([[2, 2], [2, 2]], dtype=np.int32)
    problem = even(2, 2, 4)
    assert (repair(problem, split[None], np.random.default_rng(0))[0].sum(axis=1) < 4).any()
    free = replace(problem, avoid_interference=False)
    assert (repair(free, split[None], np.random.default_rng(0))[0] == split).all()


def test_exchanges_move_gpus_to_the_job_that_gains_more() -> None:
    problem = even(
        2,
        1,
        4,
        speedup=np.array([[0, 1, 1.1, 1.15, 1.2], [0, 1, 2, 3, 4]])[:, :, None].repeat(2, axis=2),
    )
    better = improved(problem, np.array([[3], [1]], dtype=np.int32), np.random.default_rng(0))
    assert better.tolist() == [[1], [3]]


def test_gpus_left_by_an_exchange_go_to_the_worst_off_although_each_swap_of_two_blocks_it() -> None:
    """Four jobs of a round on four nodes.

    The last job must leave the second node to the second job, whose GPU goes to the first. Any two
    of them alone gain more by another exchange, after which no exchange of two helps.
    """
    one_node, several = np.zeros((4, 7)), np.zeros((4, 7))
    one_node[0, 1] = 0.486
    one_node[1, 1:3], several[1, 2] = (0.251, 0.502), 0.502
    one_node[2, 1:5], several[2, 2:] = (0.262, 0.51, 0.756, 1.0), (0.517, 0.766, 1.012, 1.25, 1.479)
    one_node[3, 1:5], several[3, 2:] = (
        (0.256, 0.51, 0.757, 1.0),
        (0.509, 0.755, 0.995, 1.224, 1.443),
    )
    speedup = np.stack((one_node, several), axis=2)
    problem = SearchProblem(
        room=np.array([4, 2, 2, 4]),
        most_on_node=np.tile(np.array([4, 2, 2, 4], dtype=np.int32), (4, 1)),
        speedup=speedup,
        allowed=(speedup.max(axis=2) > 0) | (np.arange(7) == 0),
        present=np.array([[0, 0, 0, 0], [0, 0, 1, 0], [4, 0, 1, 0], [0, 2, 0, 4]], dtype=np.int32),
        change_factor=np.array([0.58, 0.89, 0.88, 0.85]),
        taken=np.zeros(4, dtype=bool),
    )
    better = improved(problem, problem.present, np.random.default_rng(0))
    assert better.tolist() == [[0, 0, 1, 0], [0, 2, 0, 0], [4, 0, 1, 0], [0, 0, 0, 4]]


@settings(max_examples=40)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_a_search_is_no_worse_than_improving_what_there_was(
    problem: SearchProblem, seed: int
) -> None:
    start = (
        np.random.default_rng(seed)
        .integers(0, 4, size=(3, *problem.present.shape))
        .astype(np.int32)
    )
    found = search(problem, start, options=SearchOptions(10, 0, 1), rng=np.random.default_rng(seed))
    held = repair(problem, problem.present[None], np.random.default_rng(seed))[0]
    if (held == problem.present).all() and not problem.quotas:
        least = fitness(problem, improved(problem, held, np.random.default_rng(seed))[None])[0]
        assert found.fitness[0] >= least * (1 - 1e-9)
