"""Why a job has what it has, what it could have had, and when a move would pay."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.choice import Choice, choice_of
from maat.scheduling.job import UNKNOWN_WORK
from maat.scheduling.loop import plan_round
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
    assert alone == "If it were alone, it would have 2 t4: others give more for t4."
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
    assert "It would have the same if it were alone." in found.sentences
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
