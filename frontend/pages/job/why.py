"""The card of why a job waits or has what it has: words first, the numbers one step deeper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import click_target
from frontend.components.cards import card
from frontend.components.states import FINAL_STATES
from frontend.formatting import ABSENT, duration, number, parse_time
from frontend.routing import path_to
from maat.api.belief_words import weighed_words
from maat.api.job_answers import (
    ChoiceOut,
    ConfigurationOut,
    ExplanationOut,
    JobOut,
    ReasonOut,
    Remedy,
)
from maat.api.job_words import follows_others, place_words
from maat.api.reason_words import evidence_words, reason_words

MOST_BLOCKERS = 8
_HAS_GPUS = ("GRANTED", "PINNED")
PRESSES: dict[str, str] = {
    "change-job": "Change it so",
    "change-tenant": "Change it so",
    "restore-nodes": "Return to service",
    "resume": "Resume it",
    "release": "Release it",
}
"""What the button of a remedy says, by the remedy's action; others have none."""


def why(job: JobOut, explanation: ExplanationOut) -> Component:
    """The explanation: why the job waits or has what it has, or how it ended."""
    primary = explanation["primary"] or job["reason"]
    if not primary:
        return card("Why", html.Div("No round has considered it yet.", className="hint"))
    ended = job["state"] in FINAL_STATES
    sentence = _ended_words(job) if ended else primary["sentence"]
    choice = explanation["choice"]
    remedies = [_remedy(remedy) for remedy in explanation["remedies"]]
    return card(
        _title(job, primary),
        [
            html.Div(sentence, className="sentence"),
            *_blockers(job, explanation),
            *_failure(explanation),
            *(_choice_words(choice, ended=ended) if choice else []),
            *_locality(explanation),
            *_place(explanation),
            *_also(explanation["reasons"][1:]),
            *_earlier(explanation["waited"], "Before, it waited"),
            *([html.Ul(remedies, className="remedies")] if remedies else []),
            *_deeper(explanation),
        ],
        aside=dmc.Group(_source(job, primary), gap=12),
        className="explanation",
    )


def _blockers(job: JobOut, explanation: ExplanationOut) -> list[Component]:
    """The ways to the jobs that hold the GPUs it waits for, of those that the visitor may see."""
    seen = [one for one in explanation["blockers"] if one["name"] is not None]
    if not seen:
        return []
    links = [
        dcc.Link(one["name"], href=path_to(f"/jobs/{one['job']}", cluster=job["cluster_id"]))
        for one in seen[:MOST_BLOCKERS]
    ]
    named = [part for link in links for part in (link, " · ")][:-1]
    more = f" and {len(seen) - MOST_BLOCKERS} more" if len(seen) > MOST_BLOCKERS else ""
    return [html.Div(["See ", *named, more], className="hint")]


def _place(explanation: ExplanationOut) -> list[Component]:
    """How many wait before it."""
    queue = explanation["queue"]
    if queue is None:
        return []
    return [html.Div(place_words(queue["waiting"], queue["position"]), className="hint")]


def _failure(explanation: ExplanationOut) -> list[Component]:
    """What a command failed with, and the last lines that it wrote before it failed or pauses."""
    written = explanation["last_lines"]
    lines: list[Component] = []
    if written:
        lines.append(html.Pre("\n".join(written), className="job-log last-lines"))
    if explanation["primary"]["code"] != "FAILED":
        return lines
    return [html.Div(explanation["primary"]["sentence"], className="hint"), *lines]


def _choice_words(choice: ChoiceOut, *, ended: bool) -> list[Component]:
    """Why this GPU type and count, what came second, and what a move would bring."""
    told = [html.Li(sentence) for sentence in choice["sentences"]]
    if not told:
        return []
    head = [html.Div("As of its last round:", className="hint")] if ended else []
    return [*head, html.Ul(told, className="choice")]


def _also(others: Sequence[ReasonOut]) -> list[Component]:
    """What holds besides the reason that decided, in order."""
    if not others:
        return []
    told = [html.Li(other["sentence"]) for other in others]
    return [html.Div("It would still wait, as this holds too:", className="hint"), html.Ul(told)]


def _locality(explanation: ExplanationOut) -> list[Component]:
    known = explanation["locality"]
    return [] if known is None else [html.Div(weighed_words(known), className="hint")]


def _earlier(reason: ReasonOut | None, words: str) -> list[Component]:
    if reason is None:
        return []
    at = "" if reason["as_of_round"] is None else f", as of round {reason['as_of_round']}"
    return [html.Div(f"{words}{at}: {reason['sentence']}", className="hint")]


def _deeper(explanation: ExplanationOut) -> list[Component]:
    """The numbers behind the words, closed at first."""
    parts: list[Component] = []
    if explanation["choice"]:
        parts.append(_choice_table(explanation["choice"]))
    named = [*explanation["reasons"], explanation["ran"], explanation["waited"]]
    for reason in (one for one in named if one is not None):
        told = [
            html.Span([html.B(name), value]) for name, value in evidence_words(reason["evidence"])
        ]
        if told:
            parts += [
                html.Div(reason_words(reason["code"]), className="caption"),
                html.Div(told, className="strip"),
            ]
    return [html.Details([html.Summary("The numbers"), *parts])] if parts else []


def _choice_table(choice: ChoiceOut) -> Component:
    """What it has, the next best, and what it would have alone, side by side."""
    rows = [
        ("it has", choice["chosen"]),
        ("next best", choice["runner_up"]),
        ("alone, in that round", choice["alone"]),
    ]
    heads = (
        *(
            "",
            "GPUs",
            "Believed (effective samples/s)",
            "Measured, at the same noise",
            "Worth",
            "Price",
        ),
        "A move pays after",
    )
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(head) for head in heads])),
            html.Tbody([_choice_row(name, one) for name, one in rows if one is not None]),
        ],
        className="plain-table",
    )


def _choice_row(name: str, one: ConfigurationOut) -> html.Tr:
    move = one["move"]
    after = ABSENT if move is None else "never"
    if move is not None and move["pays_after_seconds"] is not None:
        after = duration(move["pays_after_seconds"])
    return html.Tr(
        [
            html.Td(name),
            html.Td(f"{one['gpu_count']} × {one['gpu_type']}"),
            *(html.Td(_figure(one[key])) for key in _FIGURES),
            html.Td(after),
        ]
    )


_Figure = Literal["goodput", "measured_goodput", "value", "price"]
_FIGURES: tuple[_Figure, ...] = ("goodput", "measured_goodput", "value", "price")


def _figure(value: float | None) -> str:
    return ABSENT if value is None else number(value)


def _title(job: JobOut, primary: ReasonOut) -> str:
    if job["state"] in FINAL_STATES:
        return "How it ended"
    if job["state"] == "paused" and not follows_others(job):
        return "Why it is paused"
    if job["allocation"] is not None:
        return "Why it has this"
    return "What it gets" if primary["code"] in _HAS_GPUS else "Why it waits"


def _source(job: JobOut, reason: ReasonOut) -> list[Component]:
    """The code of a reason in words, and the round that gave it."""
    code = html.Span(reason_words(reason["code"]), className="caption", title=reason["code"])
    number_ = reason["as_of_round"]
    if number_ is None:
        return [code]
    way = path_to(f"/rounds/{number_}", cluster=job["cluster_id"])
    return [code, dcc.Link(f"round {number_}", href=way, className="caption")]


def _remedy(remedy: Remedy) -> html.Li:
    """What would help, with the button that does it if the visitor may."""
    words = PRESSES.get(remedy["action"])
    if words is None or not remedy["permitted"]:
        return html.Li(remedy["sentence"])
    button = dmc.Button(
        words,
        variant="default",
        size="compact-xs",
        **click_target("job-remedy-pressed", code=remedy["code"]),
    )
    return html.Li([remedy["sentence"], " ", cast(Component, button)])


def _ended_words(job: JobOut) -> str:
    """How long it waited and ran, in the cluster's time."""
    begun, ended, submitted = (
        parse_time(job[name]) for name in ("started_at", "finished_at", "submitted_at")
    )
    if ended is None or submitted is None:
        return f"{job['state'].capitalize()}."
    if begun is None:
        waited = duration((ended - submitted).total_seconds())
        return f"{job['state'].capitalize()} after {waited} of waiting, without ever having run."
    waited, ran = (
        duration((begun - submitted).total_seconds()),
        duration((ended - begun).total_seconds()),
    )
    return f"{job['state'].capitalize()} {ran} after its start; before, it waited {waited}."
