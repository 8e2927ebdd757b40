"""What a job's page says of its command: what it runs, its attempts, its measured step times."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import empty_state, facts
from frontend.components.states import gpu_chip
from frontend.figures.step_times import row_id
from frontend.formatting import ABSENT, clock, count, duration, number, plural
from maat.api.attempts import AttemptOut, StepSampleOut
from maat.api.commands import CommandOut
from maat.vocabulary import AttemptKind

MOST_SHOWN = 50  # attempts, the newest
_STATES = {
    "ordered": "waits until its GPUs are free",
    "queued": "is being started",
    "starting": "has started and not reported yet",
    "running": "runs",
    "stopping": "saves and ends",
    "ended": "ended",
}
_OUTCOMES = {
    "succeeded": "succeeded",
    "stopped": "stopped as asked",
    "failed": "failed",
    "lost": "was lost",
    "cancelled": "was cancelled in the engine",
    "refused": "was refused",
    "never-started": "never started",
}
_STOPS = {
    "preempted": "its GPUs went to others",
    "paused": "it was paused",
    "moved": "it moved to other GPUs",
    "cancelled": "it was cancelled",
    "silent": "it did not report any more",
    "not-started": "it did not start in time",
    "profiled": "it had the time of a profile",
}
_SIGNALS = {-9: "killed", -15: "terminated"}


def command_facts(command: CommandOut) -> html.Dl:
    """The command as a shell would need it, and how it is run."""
    env = [html.Div(f"{name}={shlex.quote(value)}") for name, value in command["env"].items()]
    secrets = command["secret_names"]
    line = html.Code(shlex.join(command["argv"]), className="command-line")
    return facts(
        [
            ("Command", line),
            ("Folder", html.Code(command["cwd"])),
            ("Environment", html.Code(env) if env else "nothing of its own"),
            ("Secrets", html.Code(", ".join(secrets)) if secrets else "none"),
            ("Time to save and end", duration(command["stop_seconds"])),
            ("Measured before it trains", "yes, if it adapts" if command["profile"] else "no"),
            ("Retries", f"{plural(command['max_retries'], 'failure')} in a row"),
        ]
    )


def attempts_table(attempts: Sequence[AttemptOut]) -> Component:
    """The newest attempts, newest first."""
    if not attempts:
        return empty_state("No attempt yet", "The first begins once a round gives it GPUs.")
    heads = (
        "Attempt", "State", "GPUs", "Ordered (cluster time)", "Began", "Ended", "Exit codes",
        "Checkpoint (step)", "Reason",
    )  # fmt: skip
    head = html.Thead(html.Tr([html.Th(text) for text in heads]))
    rows = [_attempt_row(one) for one in sorted(attempts, key=_number, reverse=True)]
    table = html.Table([head, html.Tbody(rows)], className="plain-table")
    total = max(map(_number, attempts))
    if len(attempts) < MOST_SHOWN or total == len(attempts):
        return table
    words = f"The newest {len(attempts)} of {total}: maat attempts lists all."
    return html.Div([html.P(words, className="caption"), table])


def _attempt_row(one: AttemptOut) -> html.Tr:
    nodes = ", ".join(one["gpus_by_node"])
    held = gpu_chip(one["gpu_type"], f"{one['gpu_count']} × {one['gpu_type']}")
    step = one["checkpoint_step"]
    return html.Tr(
        [
            html.Td(f"{one['number']}, a profile" if is_profile(one) else str(one["number"])),
            html.Td(state_words(one)),
            html.Td(held, title=nodes),
            html.Td(clock(one["ordered_at"])),
            html.Td(clock(one["running_at"] or one["alive_at"])),
            html.Td(clock(one["ended_at"])),
            html.Td(exit_words(one["exit_codes"])),
            html.Td(ABSENT if step is None else count(step)),
            html.Td(why_words(one), className="wraps"),
        ]
    )


def why_words(one: AttemptOut) -> str:
    """Why it ended or is to end, and what is wrong with its checkpoints."""
    why = one["reason"] or _STOPS.get(one["stop_reason"] or "", "")
    return " ".join(words for words in (why, one["trouble"]) if words)


def state_words(one: AttemptOut) -> str:
    if one["outcome"] is not None:
        return _OUTCOMES.get(one["outcome"], one["outcome"])
    if is_profile(one) and one["state"] == "running":
        return "is profiled"
    return _STATES.get(one["state"], one["state"])


def is_profile(one: AttemptOut) -> bool:
    return one["kind"] == AttemptKind.PROFILE


def exit_words(codes: dict[str, int] | None) -> str:
    """`0 on 3 ranks, 7 on rank 1`."""
    if not codes:
        return ABSENT
    ranks: dict[int, list[str]] = {}
    for rank, code in codes.items():
        ranks.setdefault(code, []).append(rank)
    return ", ".join(
        f"{_SIGNALS.get(code, code)} on "
        + (f"rank {which[0]}" if len(which) == 1 else plural(len(which), "rank"))
        for code, which in ranks.items()
    )


def samples_table(samples: Sequence[StepSampleOut]) -> Component:
    if not samples:
        remedy = "An adaptive script reports them; one that does not report is not measured."
        return empty_state("No step was measured yet", remedy)
    heads = (
        "GPUs", "Nodes", "Batch size per GPU", "Accumulation steps", "Steps", "Step (s)",
        "Deviation (s)", "Of it waiting for others (s)", "Last (cluster time)",
    )  # fmt: skip
    head = html.Thead(html.Tr([html.Th(text) for text in heads]))
    table = [head, html.Tbody([_sample_row(one) for one in samples])]
    return html.Table(table, className="plain-table")


def _sample_row(one: StepSampleOut) -> html.Tr:
    words: list[Any] = [
        gpu_chip(one["gpu_type"], f"{one['replica_count']} × {one['gpu_type']}"),
        str(one["node_count"]),
        count(one["per_gpu_batch_size"]),
        str(one["accumulation_steps"]),
        count(one["count"]),
        number(one["step_seconds"]),
        number(one["step_deviation"]),
        number(one["sync_seconds"]),
        clock(one["last_at"]),
    ]
    return html.Tr([html.Td(word) for word in words], id=row_id(one))


def _number(one: AttemptOut) -> int:
    return one["number"]
