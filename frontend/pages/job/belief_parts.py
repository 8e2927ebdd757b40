"""What a job's page says of what Maat has learnt of it: words first, then tables."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import empty_state, scrolls
from frontend.components.states import gpu_chip
from frontend.formatting import ABSENT, column, number, percent, plural
from maat.api.belief_words import missed_words, penalty_words, restart_words, unmeasured_words
from maat.api.beliefs import BeliefOut, FitOut, ProfileOut, RestartPartOut

_PARTS = {
    "stop": "Stop, with its checkpoint",
    "queue": "Until its processes live",
    "start": "Until they can train",
    "restore": "Read the checkpoint",
}


def belief_words(belief: BeliefOut) -> Component:
    """Sentences: how well step times are known on each type, and what a larger batch is worth."""
    sentences = [
        html.Li([gpu_chip(fit["gpu_type"]), " ", _fit_words(fit)]) for fit in belief["types"]
    ]
    gradient = belief["gradient"]
    if gradient is not None:
        sentences.append(
            html.Li(
                f"Gradient noise scale {number(gradient['noise_scale'])} samples: "
                "up to about this batch size a sample keeps most of its value."
            )
        )
    if not sentences:
        remedy = "Step times come from profiles and from reports of an adaptive script."
        words = unmeasured_words(belief)
        return empty_state("Nothing was learnt yet", words if belief["played"] else remedy)
    if belief["locality"]:
        sentences.append(html.Li(penalty_words(belief)))
    return html.Ul(sentences, className="remedies")


def _fit_words(fit: FitOut) -> str:
    known = (
        f"{plural(fit['sample_count'], 'configuration')} measured in "
        f"{plural(fit['step_count'], 'step')}. {missed_words(fit)}"
        f"The model is off by {percent(fit['error'])} there"
    )
    if fit["forecast_error"] is None:
        return f"{known}; no new configuration has tested it yet."
    return f"{known}; the last new ones it had foretold within {percent(fit['forecast_error'])}."


def restart_table(belief: BeliefOut) -> list[Component]:
    """A sentence, and the parts of a restart."""
    parts = belief["restart"]
    total = restart_words(belief)
    if not parts:
        return [html.P(total)]
    heads = ("Part of a restart", "Believed (s)", "± (s)", "Measured", "Assumed (s)")
    head = html.Thead(html.Tr([html.Th(text) for text in heads]))
    believed = column([part["seconds"] for part in parts])
    rows = [
        html.Tr([html.Td(cell) for cell in _part_cells(part, seconds)])
        for part, seconds in zip(parts, believed, strict=True)
    ]
    table = html.Table([head, html.Tbody(rows)], className="plain-table")
    note = "What is assumed counts as one measurement; of measurements, the newest ten count."
    where = scrolls("job-restart-table", table, label="The parts of a restart")
    return [html.P(total), where, html.Div(note, className="hint")]


def _part_cells(part: RestartPartOut, believed: str) -> list[str]:
    spread = part["deviation"]
    return [
        _PARTS[part["name"]],
        believed,
        ABSENT if spread is None else number(spread, 2),
        str(part["measured"]),
        number(part["assumed_seconds"]),
    ]


def profiles_table(belief: BeliefOut) -> list[Component]:
    """What profiling cost, steps and start-up apart; nothing if the job was not profiled."""
    profiles, ended = belief["profiles"], belief["profiles_ended"]
    if not profiles:
        return []
    heads = ("Profiled on", "Result", "Steps (GPU-s)", "Start-up (GPU-s)", "Tries", "Reason")
    head = html.Thead(html.Tr([html.Th(text) for text in heads]))
    stepping = column([one["stepping_gpu_seconds"] for one in profiles])
    starting = column([one["startup_gpu_seconds"] for one in profiles])
    rows = [
        html.Tr(
            [
                html.Td(gpu_chip(one["gpu_type"])),
                html.Td(_profile_words(one)),
                html.Td(steps),
                html.Td(start),
                html.Td(str(one["attempts"])),
                html.Td(one["reason"], className="wraps"),
            ]
        )
        for one, steps, start in zip(profiles, stepping, starting, strict=True)
    ]
    table = html.Table([head, html.Tbody(rows)], className="plain-table")
    where = scrolls("job-profiles-table", table, label="The profiles of the job")
    return [where] if ended is None else [where, html.Div(ended, className="hint")]


def _profile_words(one: ProfileOut) -> str:
    if one["outcome"] is None:
        return "is being profiled"
    return "measured" if one["outcome"] == "succeeded" else f"ended: {one['outcome']}"
