"""What a job's page says of a command, in words."""

from __future__ import annotations

from typing import Any

import pytest
from dash import html
from frontend_samples import belief, measured_penalty

from frontend.pages.job.belief_parts import belief_words, profiles_table, restart_table
from frontend.pages.job.run_parts import (
    MOST_SHOWN,
    attempts_table,
    command_facts,
    exit_words,
    samples_table,
    state_words,
)
from frontend.pages.job.why import why
from maat.cli.belief import belief_lines

ATTEMPT: dict[str, Any] = {
    "kind": "train",
    "number": 1,
    "state": "running",
    "outcome": None,
    "reason": "",
    "gpu_type": "cpu",
    "gpu_count": 2,
    "gpus_by_node": {"cpu-0": [0, 1]},
    "ordered_at": "2026-11-20T10:00:00Z",
    "alive_at": "2026-11-20T10:00:01Z",
    "running_at": None,
    "ended_at": None,
    "stop_reason": None,
    "exit_codes": None,
    "checkpoint_step": 1200,
    "trouble": None,
}


def text_of(component: Any) -> str:
    if isinstance(component, list | tuple):
        return " ".join(text_of(part) for part in component)
    if component is None or isinstance(component, str | int | float):
        return str(component or "")
    return text_of(getattr(component, "children", ""))


def test_a_command_is_shown_as_a_shell_needs_it_and_secrets_by_name() -> None:
    command: Any = {
        "argv": ["python", "my train.py", "$HOME"],
        "cwd": "/srv",
        "env": {"A": "two words"},
        "secret_names": ["KEY"],
        "stop_seconds": 120.0,
        "max_retries": 3,
        "total_samples": None,
        "profile": True,
        "utilisation": None,
        "locality_penalty": None,
    }
    said = text_of(command_facts(command))
    assert "python 'my train.py' '$HOME'" in said
    assert "A='two words'" in said
    assert "KEY" in said


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (None, "–"),
        ({"0": 0, "1": 0, "2": 7}, "0 on 2 ranks, 7 on rank 2"),
        ({"0": -9, "1": 143}, "killed on rank 0, 143 on rank 1"),
    ],
)
def test_exit_codes_are_told_together(codes: Any, words: str) -> None:
    assert exit_words(codes) == words


def test_attempts_stand_newest_first_with_their_ends_in_words() -> None:
    ended: Any = {**ATTEMPT, "state": "ended", "outcome": "stopped", "stop_reason": "preempted"}
    live: Any = {**ATTEMPT, "number": 2}
    assert state_words(ended) == "stopped as asked"
    table: Any = attempts_table([ended, live])
    rows = table.children[1].children
    assert [text_of(row.children[0]) for row in rows] == ["2", "1"]
    assert "its GPUs went to others" in text_of(rows[1])


def test_what_is_not_there_yet_says_so() -> None:
    assert "No attempt yet" in text_of(attempts_table([]))
    assert "No step was measured yet" in text_of(samples_table([]))


def test_a_failure_shows_its_cause_and_last_lines_as_text() -> None:
    job: Any = {
        "id": "job_a", "state": "failed", "allocation": None, "cluster_id": "c", "reason": None,
        "started_at": "2026-11-20T10:00:00Z", "finished_at": "2026-11-20T10:01:00Z",
        "submitted_at": "2026-11-20T09:59:00Z",
    }  # fmt: skip
    sentence = "The job has failed: Rank 0 ended with exit code 7."
    primary = {"code": "FAILED", "sentence": sentence, "evidence": {}, "as_of_round": 3}
    told: Any = {
        "primary": primary,
        "reasons": [primary],
        "waited": None,
        "ran": None,
        "choice": None,
        "locality": None,
        "queue": None,
        "blockers": [],
        "remedies": [],
        "last_lines": ["<b>x</b>", "ValueError"],
    }
    card = why(job, told)
    assert sentence in text_of(card)
    (lines,) = (part for part in card.children if isinstance(part, html.Pre))
    assert lines.children == "<b>x</b>\nValueError"
    assert "on the cluster now" not in text_of(card)
    waits = why({**job, "state": "pending"}, {**told, "queue": {"waiting": 3, "position": 2}})
    assert "3 jobs wait on the cluster now." in text_of(waits)
    assert "it is number 2" in text_of(waits)
    weighed = why(job, {**told, "locality": measured_penalty()})
    assert "a step across nodes costs: on t4 1.7 times as long (measured" in text_of(weighed)


def test_what_was_learnt_is_told_in_words_with_its_error() -> None:
    said = text_of(belief_words(belief()))
    assert "2 configurations measured in 240 steps. The model is off by 1 % there" in said
    assert "no new configuration has tested it yet" in said
    assert "noise scale 321 samples" in said
    tested: Any = {**belief()["types"][0], "forecast_error": 0.07}
    assert "the last new ones it had foretold within 7 %" in text_of(
        belief_words({**belief(), "types": [tested]})
    )


def test_a_measured_point_that_the_model_misses_is_named() -> None:
    point = {
        "node_count": 1,
        "replica_count": 2,
        "per_gpu_batch_size": 64,
        "measured_seconds": 0.1,
        "modelled_seconds": 0.4,
    }
    missing: Any = {**belief(), "types": [{**belief()["types"][0], "missed": [point]}]}
    for says in (lambda of: text_of(belief_words(of)), lambda of: "\n".join(belief_lines(of))):
        assert (
            "Its model misses 1 of them by more than 10 %: on 2 replicas on 1 node, at 64 samples "
            "per GPU, a step took 0.1 s and is believed to take 0.4 s, 300 % off."
        ) in says(missing)
        assert "misses" not in says(belief())


def test_a_restart_is_told_in_parts_and_where_they_come_from() -> None:
    said = text_of(restart_table(belief()))
    assert "A restart takes about 28 s, by 2 measurements." in said
    assert "Stop, with its checkpoint 3 0.4 2 5" in said
    unmeasured: Any = [{**part, "measured": 0} for part in belief()["restart"]]
    assert "assumed: none was measured" in text_of(
        restart_table({**belief(), "restart": unmeasured})
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "on t4 1.7 times as long (measured: 2 configurations, 340 steps)."),
        ({"origin": "declared"}, "on t4 1.7 times as long (declared)."),
        (
            {"origin": "assumed", "penalty": 1.0},
            "on t4 nothing (assumed: not measured within a node and across nodes).",
        ),
    ],
)
def test_the_penalty_across_nodes_is_told_with_its_origin(
    change: dict[str, object], words: str
) -> None:
    known: Any = {**belief(), "locality": [{**measured_penalty(), **change}]}
    for said in (text_of(belief_words(known)), "\n".join(belief_lines(known))):
        assert f"A step across nodes, as the placer pal weighs it: {words}" in said
    played: Any = {**belief(), "locality": []}
    assert "across nodes" not in text_of(belief_words(played))


def test_profiles_show_steps_and_start_up_apart() -> None:
    assert "t4 measured 4.25 6.50 1" in text_of(profiles_table(belief()))
    assert "No more." in text_of(profiles_table({**belief(), "profiles_ended": "No more."}))
    assert profiles_table({**belief(), "profiles": []}) == []


def test_a_profile_is_named_among_the_attempts() -> None:
    profile: Any = {**ATTEMPT, "kind": "profile"}
    assert state_words(profile) == "is profiled"
    table: Any = attempts_table([profile])
    assert "1, a profile" in text_of(table)


def test_an_attempt_shows_what_is_wrong_with_its_checkpoints_and_who_cancelled_it() -> None:
    full = "No checkpoint could be written: no space left"
    said = text_of(attempts_table([{**ATTEMPT, "trouble": full}]))  # type: ignore[list-item]
    assert full in said
    ended = {**ATTEMPT, "outcome": "cancelled", "reason": "It was cancelled in Slurm."}
    assert "was cancelled in the engine" in text_of(attempts_table([ended]))  # type: ignore[list-item]


def test_of_very_many_attempts_the_newest_are_shown_and_counted() -> None:
    def shown(count: int, newest: int) -> str:
        numbers = range(newest - count + 1, newest + 1)
        return text_of(attempts_table([{**ATTEMPT, "number": each} for each in numbers]))  # type: ignore[list-item]

    assert "newest" not in shown(MOST_SHOWN, MOST_SHOWN)
    assert f"The newest {MOST_SHOWN} of 600" in shown(MOST_SHOWN, 600)
