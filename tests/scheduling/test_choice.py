"""Why a job has what it has, what it could have had, and when a move would pay."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.choice import Choice, Measured, choice_of
from maat.scheduling.job import UNKNOWN_WORK
from maat.scheduling.loop import plan_round
from maat.scheduling.move_worth import BatchPace, move_worth
from maat.scheduling.moving import pays_after, with_moves
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES


def choices(policy: str, cluster: str, *names: str, left: float = 1e6) -> dict[str, Choice]:
    jobs = [replace(job(spec(n), belief(t4=0.5, rtx=0.3)), remaining_work=left) for n in names]
    placer = PLACERS.build("packed")
    result = plan_round(round_of(cluster, *jobs), POLICIES.build(policy), placer)
    found = {name: choice_of(why.evidence) for name, why in result.explained.items()}
    return {name: one for name, one in found.items() if one and name in result.decision.grants}


def test_a_move_has_paid_once_its_faster_pace_made_up_for_the_restart() -> None:
    at = pays_after(2.0, 3.0, 30.0)
    assert at == 90.0
    assert at * 2.0 == (at - 30.0) * 3.0
    assert pays_after(2.0, 2.0, 30.0) is None
    assert pays_after(2.0, 1.0, 30.0) is None
    assert pays_after(2.0, 2.0 * (1 + 1e-12), 30.0) is None
    assert pays_after(2.0, 2.0 * 1.002, 30.0) == pytest.approx(30.0 * 501)


def test_a_job_that_is_outbid_learns_by_what_and_when_a_move_would_pay() -> None:
    found = choices("sia", "t4=1x2,rtx=1x1", "a", "b", "c")
    small = next(one for one in found.values() if one.name == "1 rtx")
    assert small.runner_up is not None
    assert small.alone is not None
    assert (small.runner_up.name, small.alone.name) == ("2 t4", "2 t4")
    goodput, then = small.chosen.goodput, small.alone.goodput
    assert goodput
    assert then
    assert small.alone.pays_after_seconds == pytest.approx(30.0 * then / (then - goodput))
    assert small.remaining_seconds == pytest.approx(1e6 / goodput)
    why, second, alone, move = small.sentences
    assert why.startswith("It has 1 rtx: of all that it could have")
    assert second == (
        "Next best was 2 t4: worth more to it, but its GPUs cost more: others give more for t4."
    )
    assert alone == "Alone, this round would have given it 2 t4: others give more for t4."
    assert "cost a restart of 30 s; it would pay after" in move
    assert "but" not in move.split("pay after")[1]


def test_a_move_that_pays_only_after_the_end_says_so() -> None:
    found = choices("sia", "t4=1x2,rtx=1x1", "a", "b", "c", left=1000.0)
    small = next(one for one in found.values() if one.name == "1 rtx")
    assert ", but by its model it has" in small.sentences[-1]


def test_nothing_is_said_of_the_time_left_where_nobody_knows_the_work() -> None:
    evidence = {"gpu_type": "t4", "goodput_samples_per_second": 2.0, "runner_up_gpu_type": "rtx"}
    assert "remaining_seconds" in with_moves(job(spec("a", work=1e10)), evidence)
    unknown = job(spec("a", work=UNKNOWN_WORK))
    assert "remaining_seconds" not in with_moves(unknown, evidence)


def test_what_lasts_for_days_is_told_in_days() -> None:
    found = choices("sia", "t4=1x2,rtx=1x1", "a", "b", "c", left=1e9)
    small = next(one for one in found.values() if one.name == "1 rtx")
    assert re.search(r"by its model it has [\d,]+ days left\.$", small.sentences[-1])


def test_a_job_that_has_its_best_is_told_that_a_move_would_never_pay() -> None:
    (found,) = choices("sia", "t4=1x2,rtx=1x1", "a").values()
    assert "Alone, this round would have given it the same." in found.sentences
    assert found.sentences[-1].endswith("and never pay: it would be no faster there.")


def test_an_order_says_what_its_next_type_is_and_what_of_it_is_free() -> None:
    found = choices("fifo", "t4=1x1,rtx=1x2", "a", "b")
    first = found["a"]
    assert first.chosen.value is None
    assert first.sentences[0] == (
        "It has 1 rtx: the policy gives jobs as many GPUs as they ask for."
    )
    assert "Its next type is 1 t4: 1 of its GPUs is left free." in first.sentences


def test_a_share_policy_claims_nothing_about_a_job_that_is_alone() -> None:
    for one in choices("gavel", "t4=1x1,rtx=1x1", "a", "b").values():
        assert one.alone is None


def test_optimus_compares_steps_and_pollux_only_what_one_job_could_have() -> None:
    optimus = choices("optimus", "t4=1x1,rtx=1x1", "a", "b")
    assert all(one.chosen.goodput is None for one in optimus.values())
    pollux = choices("pollux", "t4=1x2", "a", "b")
    assert all(one.runner_up is None and one.alone is not None for one in pollux.values())


def test_evidence_without_gpus_is_no_choice() -> None:
    assert choice_of({"restarting": 1, "preemptible": 1}) is None


EVIDENCE = {
    "gpu_type": "a100",
    "gpu_count": 1,
    "goodput_samples_per_second": 4800.0,
    "noise_scale": 1000.0,
    "initial_batch_size": 128,
    "best_batch_size": 2048,
    "alone_gpu_type": "a100",
    "alone_gpu_count": 2,
    "alone_goodput_samples_per_second": 2400.0,
    "alone_pays_after_seconds": None,
    "restart_seconds": 50.0,
    "remaining_seconds": 1000.0,
}


def one_batch(throughput: float) -> list[BatchPace]:
    return [BatchPace(2048, throughput * 600, 600.0)]


def test_what_was_measured_on_both_counts_before_what_is_believed() -> None:
    """A belief that two GPUs are slower than one, and the samples that say the opposite."""
    measured = Measured({("a100", 1): one_batch(4842.0), ("a100", 2): one_batch(9684.0)})
    found = choice_of(EVIDENCE, measured)
    assert found is not None
    assert found.alone is not None
    assert found.pays_after_seconds(found.alone) == pytest.approx(100.0)
    move = found.sentences[-1]
    assert "it would pay after 2 min (measured, in effective samples/s at that round's" in move
    assert "noise: 3 584 there, 1 792 here" in move
    assert "the round believed 2 400 there" in move
    assert "never pay" not in " ".join(found.sentences)


@given(st.floats(1.0, 1e5), st.floats(1.0, 1e5), st.floats(0.0, 1e9))
def test_explanation_and_ledger_give_one_answer(here: float, there: float, phi: float) -> None:
    """The ledger calls a move to these GPUs no faster, and the explanation that it never pays."""
    old, new = one_batch(here), one_batch(there)
    found = choice_of(
        {**EVIDENCE, "noise_scale": phi}, Measured({("a100", 1): old, ("a100", 2): new})
    )
    moved = move_worth(old, new, noise_scale=phi, stood_seconds=50.0, ran_seconds=600.0, lasts=True)
    assert found is not None
    assert found.alone is not None
    explained, needed = found.pays_after_seconds(found.alone), moved.pays_after_seconds
    if abs(there / here - 1) > 1e-9:
        assert (explained is None) is (needed is None)
    if explained is not None and needed is not None:
        assert explained == pytest.approx(needed + 50.0, rel=1e-3)


def test_what_is_measured_of_one_alone_is_not_compared_with_what_is_believed_of_the_other() -> None:
    found = choice_of(EVIDENCE, Measured({("a100", 2): one_batch(99_999.0)}))
    assert found is not None
    assert found.sentences[-1].endswith("and never pay: it would be no faster there.")


def test_a_job_that_does_less_than_was_believed_says_both_and_why() -> None:
    def told(goodput: float, batch: int) -> str:
        found = choice_of(EVIDENCE, Measured({}, goodput, batch))
        assert found is not None
        return " ".join(found.sentences)

    assert "It does 4 000 effective samples/s there now; the round believed 4 800: what is" in told(
        4000.0, 2048
    )
    other = told(2000.0, 128)
    assert "at its best batch size of 2 048 samples: it runs 128 until its agent chooses" in other
    assert "counts steps alone" in other  # that is so besides, and may be most of the difference
    assert "believed" not in told(4700.0, 2048)


def test_the_time_left_is_told_at_the_pace_that_it_has() -> None:
    evidence = {**EVIDENCE, "alone_pays_after_seconds": 100.0}
    found = choice_of(evidence, Measured({}, 2400.0, 2048, remaining_seconds=2000.0))
    assert found is not None
    assert found.remaining_seconds == 2000.0
    assert found.sentences[-1].endswith("at its present pace it has 33 min left.")


def test_a_job_that_stands_still_has_the_time_left_that_its_new_gpus_are_known_to_need() -> None:
    """It moved a moment ago, and ran here before: not at what it did on the GPUs before."""
    evidence = {**EVIDENCE, "alone_pays_after_seconds": 100.0}
    unknown, known = (
        choice_of(evidence, measured)
        for measured in (Measured(), Measured({("a100", 1): one_batch(4842.0)}))
    )
    assert unknown is not None
    assert known is not None
    assert unknown.remaining_seconds == 1000.0
    assert unknown.sentences[-1].endswith("by its model it has 17 min left.")
    assert known.chosen.measured == pytest.approx(1792.0, rel=0.01)
    assert known.remaining_seconds == pytest.approx(4800.0 / known.chosen.measured * 1000.0)
    assert known.sentences[-1].endswith("at what was measured of it here it has 45 min left.")
    assert not [one for one in (*unknown.sentences, *known.sentences) if "now" in one]


def test_a_round_that_decided_earlier_is_the_one_that_would_have_given_more() -> None:
    found = choice_of({**EVIDENCE, "decided_by_round": 402})
    assert found is not None
    assert "Alone, round 402 would have given it 2 a100." in found.sentences


def test_no_limit_keeps_a_job_from_what_it_has() -> None:
    same = {"alone_gpu_count": 1, "alone_limit": "capacity:a100"}
    found = choice_of({**EVIDENCE, **same})
    assert found is not None
    assert found.alone is not None
    assert found.alone.limit is None
    assert "Alone, this round would have given it the same." in found.sentences


@pytest.mark.parametrize(
    ("goodput", "batch", "known", "words"),
    [
        (2000.0, 128, {"noise_scale": 0.0, "best_batch_size": 128}, "counts steps alone"),
        (9000.0, 2048, {"noise_scale": 0.0}, "gradients were not measured yet"),
        (9000.0, 128, {"noise_scale": 0.0, "best_batch_size": 128}, "noise of its gradients as"),
        (9000.0, 2048, {}, "by its model and by the noise of its gradients as they were known"),
        (9000.0, 256, {}, "by its model and by the noise of its gradients as they were known"),
        (9000.0, 2048, {"decided_by_round": 7}, "by what was known of it then"),
        (2000.0, 2048, {"decided_by_round": 7}, "known of it then; and what is believed counts"),
    ],
)
def test_only_a_reason_that_can_explain_the_difference_is_given(
    goodput: float, batch: int, known: dict[str, object], words: str
) -> None:
    """What comes between steps, or a worse batch size, explains less than was believed only."""
    found = choice_of({**EVIDENCE, **known}, Measured(goodput=goodput, batch_size=batch))
    assert found is not None
    (does,) = [sentence for sentence in found.sentences if "there now" in sentence]
    assert words in does


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"noise_scale": 0.0}, "the round believed 4 800: its gradients were not measured yet"),
        (
            {"decided_by_round": 71},
            "round 71, which decided on these GPUs, believed 4 800, by what was known of it then",
        ),
        (
            {"noise_scale": 0.0, "decided_by_round": 71},
            "round 71, which decided on these GPUs, believed 4 800: its gradients were not",
        ),
    ],
)
def test_a_belief_of_before_it_was_known_better_is_told_as_one(
    known: dict[str, object], words: str
) -> None:
    found = choice_of({**EVIDENCE, **known}, Measured(goodput=9000.0, batch_size=4096))
    assert found is not None
    (does,) = [sentence for sentence in found.sentences if "there now" in sentence]
    assert words in does
    assert "counts steps alone" not in does


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("capacity:a100", "others hold those GPUs"),
        ("quota:a100:vision", "its tenant's quota does not leave them"),
        ("ceiling:a100:vision", "its tenant's quota does not allow them"),
        ("shape:a100>=4", "the nodes have no room for it"),
    ],
)
def test_what_kept_it_from_what_it_had_alone_is_named_by_its_kind(limit: str, words: str) -> None:
    found = choice_of({**EVIDENCE, "alone_limit": limit})
    assert found is not None
    assert f"Alone, this round would have given it 2 a100: {words}." in found.sentences
