"""Shockwave if demands do not divide each other.

Rounds are packed, with a proof of the loss, and a work limit ends the search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.examples import belief, job, round_of, spec
from scheduling.test_shockwave import EXACT, window_of

from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.shockwave.packing import PACKING_GAP, earliest, packed, share_packed
from maat.scheduling.policies.shockwave.window import Window, share_counts, share_rounds
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving import mixed_highs
from maat.scheduling.solving.mixed_programme import MixedOptions, MixedProgramme
from maat.vocabulary import Adaptivity

DEMANDS = (1, 2, 3, 5, 6, 7)
given_jobs = st.lists(
    st.tuples(st.sampled_from(DEMANDS), st.floats(0.0, 0.95), st.floats(0.5, 12.0)),
    min_size=1,
    max_size=7,
)


def mixed_window(many: int = 24, *, seed: int = 0) -> Window:
    """A window short of GPUs, with jobs of very different weights."""
    rng = np.random.default_rng(seed)
    listed = [
        (
            int(rng.choice((1, 2, 3, 6, 7, 10, 14))),
            float(rng.uniform(0, 0.9)),
            float(rng.uniform(5, 60)),
        )
        for _ in range(many)
    ]
    return window_of(
        *listed, free=64, rounds=20, k=0.12, weight=rng.choice((1.0, 3.0, 40.0), many) / many
    )


@settings(max_examples=30)
@given(given_jobs=given_jobs, k=st.sampled_from((0.0, 0.1, 3.0)))
def test_packed_rounds_fit_and_are_worth_next_to_what_the_best_rounds_are(
    given_jobs: list[tuple[int, float, float]], k: float
) -> None:
    window = window_of(*given_jobs, free=8, rounds=4, k=k)
    table, report = share_packed(window, EXACT)
    best, exact = share_rounds(window, EXACT)
    assert table is not None
    assert best is not None
    assert set(np.unique(table).tolist()) <= {0, 1}
    assert (window.demand @ table <= 8).all()
    assert window.objective(table.sum(axis=1)) == pytest.approx(report.objective, abs=1e-6)
    assert (
        report.objective
        >= exact.objective - PACKING_GAP * max(abs(exact.objective), abs(report.bound)) - 1e-6
    )
    assert report.bound >= exact.objective - 1e-6, "what is proved bounds the best rounds"


@pytest.mark.parametrize("seed", range(5))
def test_a_full_window_is_packed_to_within_a_few_per_cent_of_the_bound_of_its_counts(
    seed: int,
) -> None:
    window = mixed_window(seed=seed)
    count, by_counts = share_counts(window, MixedOptions(gap=1e-3))
    assert count is not None
    table = packed(window, count)
    assert (window.demand @ table <= window.free).all()
    assert by_counts.bound - window.objective(table.sum(axis=1)) <= 0.05 * abs(by_counts.bound)


def test_who_must_run_runs_in_every_round() -> None:
    window = mixed_window()
    must = np.zeros(len(window), dtype=bool)
    must[[3, 8]] = True
    table, _ = share_packed(replace(window, must_run=must), MixedOptions(gap=1e-3))
    assert table is not None
    assert table[must].all()


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), many=st.integers(2, 12))
def test_earlier_rounds_keep_their_number_and_go_to_jobs_of_more_weight(
    seed: int, many: int
) -> None:
    window = mixed_window(many, seed=seed)
    count, _ = share_counts(replace(window, free=20), MixedOptions(gap=1e-3))
    assert count is not None
    table = packed(replace(window, free=20), count)
    priority = np.random.default_rng(seed).uniform(1.0, 100.0, many)
    ordered = earliest(replace(window, free=20), table, priority)
    assert (ordered.sum(axis=1) == table.sum(axis=1)).all()
    assert (window.demand @ ordered <= 20).all()
    mean = [
        priority @ (rounds @ np.arange(window.rounds) / np.maximum(table.sum(axis=1), 1))
        for rounds in (table, ordered)
    ]
    assert mean[1] <= mean[0] + 1e-9


def crowded_round() -> RoundInput:
    rng = np.random.default_rng(1)
    sizes = [int(rng.choice((1, 2, 3, 5, 6, 7))) for _ in range(20)]
    specs = [
        spec(
            f"j{i}",
            adaptivity=Adaptivity.RIGID,
            gpu_count=gpus,
            batch_size=32 * gpus,
            submitted_at=10.0 * i,
            work=2e5 + 1e5 * (i % 7),
        )
        for i, gpus in enumerate(sizes)
    ]
    return round_of("t4=4x4", *(job(one, belief(t4=0.1)) for one in specs), now=500.0)


def test_decisions_do_not_depend_on_how_long_a_search_may_take_or_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock ten times as fast, as on a busy machine, changes nothing."""
    build = POLICIES.build("shockwave")
    on_time = build.allocate(crowded_round())
    run = mixed_highs.run_highs

    def hurried(programme: MixedProgramme, options: MixedOptions) -> mixed_highs.MixedHighsAnswer:
        return run(programme, replace(options, seconds=options.seconds / 10))

    monkeypatch.setattr(mixed_highs, "run_highs", hurried)
    late = build.allocate(crowded_round())
    assert late.grants == on_time.grants
    assert late.state == on_time.state
    assert not on_time.report.out_of_time
