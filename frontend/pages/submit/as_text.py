"""The job of the form as text: YAML that can be edited, and what to paste elsewhere.

The text follows the form. Once it is left, the form follows the text, if it can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component
from pydantic import ValidationError

from frontend.addresses import Check, among
from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.cards import card, error_state, refused_state
from frontend.pages.submit import from_text
from frontend.pages.submit.fields import SHOWN, field_id
from frontend.pages.submit.from_text import Lines
from frontend.pages.submit.given import Given, GivenJob, form_sources, given_job
from frontend.pages.submit.later import later_id
from frontend.pages.submit.model import FIELDS
from frontend.pages.submit.run_fields import run_id
from frontend.pages.submit.run_filling import FILLED
from frontend.pages.submit.run_model import SWITCHES
from frontend.pages.submit.run_secrets import ROWS, secret_rows
from frontend.pages.submit.snippets import in_python, on_command_line, with_curl
from frontend.pages.submit.trying import tried
from maat.client import ApiError
from maat.client.calls import RawBody
from maat.client.job_file import JobFile, JobFileError, job_file_text, parse_job_file
from maat.vocabulary import ExecutorKind

MOST_CHARACTERS = 50_000
YAML = "yaml"
KINDS = {YAML: "YAML", "curl": "curl", "python": "Python", "cli": "Command line"}
TAKES: Check = among("kind of text", KINDS)
_TO_PASTE = {"curl": with_curl, "python": in_python, "cli": on_command_line}
_HINT = {
    YAML: "Change the form or this text: each follows the other. maat submit reads it as a file.",
    "curl": "MAAT_TOKEN is taken from your shell, where the service asks for one.",
    "python": "Needs the package maat. MAAT_TOKEN is read from the environment.",
    "cli": "MAAT_TOKEN is taken from your shell, where the service asks for one.",
}
_LATER = ("after", "deadline")
Clusters = Sequence[dict[str, str]]
"""The choices of the frame: `value` an id, `label` a name."""


def text_card(kind: str | None) -> Component:
    """`kind`: of the address."""
    choice = dmc.SegmentedControl(
        id="submit-text-kind",
        data=[{"value": value, "label": label} for value, label in KINDS.items()],
        value=kind if kind in KINDS else YAML,
        size="xs",
        transitionDuration=0,
        **aria("Kind of text"),
    )
    copy: dict[str, Any] = {"data-copy": "submit-text submit-text-code"}
    head = [choice, dmc.Button("Copy", variant="default", size="xs", **copy)]
    edited = dmc.Textarea(
        id="submit-text",
        value="",
        autosize=True,
        minRows=6,
        maxRows=24,
        debounce=True,
        className="code-field",
        attributes={"input": {"spellCheck": False, "wrap": "off"}},
        **aria("The job as YAML"),
    )
    buttons = [
        dmc.Button("Fill the form", id="submit-text-fill", variant="default", size="xs"),
        dmc.Button("Try the text", id="submit-text-try", variant="default", size="xs"),
    ]
    return card(
        "The same as text",
        [
            html.Div(
                [
                    edited,
                    html.Div(id="submit-text-wrong", className="form-error", role="alert"),
                    dmc.Group(buttons, gap=8, mt=8),
                    html.Div(id="submit-text-tried"),
                ],
                id="submit-text-box",
            ),
            html.Pre(id="submit-text-code", className="job-log", style=HIDDEN),
            html.Div(id="submit-text-hint", className="hint"),
            dcc.Store(id="submit-origin"),
        ],
        aside=dmc.Group(head, gap=8),
        className="span-12",
    )


def register(app: Dash, api: Api) -> None:
    in_browser(app, "originOf", Output("submit-origin", "data"), Input("submit-text", "id"))
    in_browser(
        app,
        "textInUrl",
        Output("submit-text-kind", "id"),
        Input("submit-text-kind", "value"),
        prevent_initial_call=True,
    )
    answer(
        app,
        write,
        output={
            "text": Output("submit-text", "value"),
            "code": Output("submit-text-code", "children"),
            "box": Output("submit-text-box", "style"),
            "code_box": Output("submit-text-code", "style"),
            "hint": Output("submit-text-hint", "children"),
            "wrong": Output("submit-text-wrong", "children", allow_duplicate=True),
        },
        inputs={
            "given": form_sources(Input),
            "kind": Input("submit-text-kind", "value"),
            "origin": Input("submit-origin", "data"),
        },
        state={"clusters": State("cluster-select", "data"), "text": State("submit-text", "value")},
        prevent_initial_call="initial_duplicate",
    )
    _register_reading(app, api)
    answer(
        app,
        partial(try_text, api),
        output={"tried": Output("submit-text-tried", "children")},
        inputs={"clicks": Input("submit-text-try", "n_clicks")},
        state={
            "text": State("submit-text", "value"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-text-try", "loading"), True, False)],
    )


def _register_reading(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(read, api),
        output={
            "played": {
                name: Output(field_id(name), "value", allow_duplicate=True) for name in FIELDS
            },
            "priorities": Output(field_id("priority"), "data", allow_duplicate=True),
            "preemptible": Output("submit-preemptible", "checked", allow_duplicate=True),
            "later": _later_outputs("submit"),
            "run": {name: Output(run_id(name), "value", allow_duplicate=True) for name in FILLED},
            "run_priorities": Output(run_id("priority"), "data", allow_duplicate=True),
            "switches": {
                name: Output(run_id(name), "checked", allow_duplicate=True) for name in SWITCHES
            },
            "run_later": _later_outputs("submit-run"),
            "rows": Output(ROWS, "children", allow_duplicate=True),
            "cluster": Output("cluster-select", "value", allow_duplicate=True),
            "wrong": Output("submit-text-wrong", "children"),
        },
        inputs={
            "left": Input("submit-text", "n_blur"),
            "pressed": Input("submit-text-fill", "n_clicks"),
        },
        state={
            "text": State("submit-text", "value"),
            "given": form_sources(State),
            "clusters": State("cluster-select", "data"),
        },
        prevent_initial_call=True,
        running=[
            (Output("submit-button", "disabled"), True, False),
            (Output("submit-run-button", "disabled"), True, False),
        ],
    )


def _later_outputs(prefix: str) -> dict[str, Output]:
    return {name: Output(later_id(prefix, name), "value", allow_duplicate=True) for name in _LATER}


async def write(
    *, given: Given, kind: str, origin: str | None, clusters: Clusters | None, text: str | None
) -> Changes:
    """Write the job of the form, unless the text says the same job in its own way."""
    job = given_job(given)
    body = _shown(job.body, clusters)
    changes = {
        "box": SHOWN if kind == YAML else HIDDEN,
        "code_box": HIDDEN if kind == YAML else SHOWN,
        "hint": _HINT[kind],
    }
    if kind == YAML and job.indices:
        changes["hint"] = _of_an_array(given["run_later" if job.runs else "later"]["array"])
    if kind != YAML:
        return {**changes, "code": _to_paste(job, body, kind, origin or "")}
    known = _parsed(text)
    if isinstance(known, JobFile) and _same(known.body, job.body, clusters):
        return {**changes, "wrong": None}
    return {**changes, "text": job_file_text(body), "wrong": None}


def _of_an_array(indices: str) -> str:
    """Say how the text becomes an array; `indices`: as they were typed."""
    joined = ",".join(indices.replace(",", " ").split())
    return (
        f"{_HINT[YAML]} It describes one job of the array; all of them: "
        f"maat submit FILE --array {joined}"
    )


async def read(
    api: Api,
    *,
    left: int | None,
    pressed: int | None,
    text: str | None,
    given: Given,
    clusters: Clusters | None,
) -> Changes:
    """Fill the form as the text says; say by line what cannot be used."""
    if not left and not pressed:
        return NOTHING  # Dash asks as the page comes: the form has not written its text yet
    file = _parsed(text)
    if not isinstance(file, JobFile):
        return {"wrong": _error_list(file)}
    job = given_job(given)
    if _same(file.body, job.body, clusters):
        return {"wrong": None}
    cluster_id = _cluster_id(file.body, clusters) or given["cluster_id"]
    try:
        async with api.visitor() as maat:
            runs = (await maat.cluster(cluster_id))["executor"] != ExecutorKind.SIMULATED
    except ApiError as error:
        return {
            "wrong": _error_list([(file.line_of("/cluster_id"), f"cluster_id: {error.detail}")])
        }
    except Failure as error:
        return {"wrong": error_state(error)}
    wrong = from_text.wrong_lines(file, runs=runs)
    if wrong:
        return {"wrong": _error_list(wrong)}
    chosen = {} if cluster_id == given["cluster_id"] else {"cluster": cluster_id}
    filled = _command_filled(file.body, given) if runs else _played_filled(file.body)
    return {**filled, **chosen, "wrong": None}


async def try_text(
    api: Api, *, clicks: int | None, text: str | None, cluster_id: str | None
) -> Changes:
    """Say what a submission of the text would make, or by line what is wrong with it.

    It does not write to `submit-text-wrong`: a press of the button also leaves the text, and the
    callbacks `read` and `write` then overwrite that place.
    """
    if not clicks:
        return NOTHING
    file = _parsed(text)
    if not isinstance(file, JobFile):
        return {"tried": _refused(_error_list(file))}
    body = {"cluster_id": cluster_id, **_with_some_secrets(file.body)}
    found = await tried(api, body, jobs=1)
    if isinstance(found, ApiError):
        lines = from_text.refused_lines(file, found.errors)
        return {"tried": _refused(_error_list(lines)) if lines else refused_state(found)}
    return {"tried": found}


def _parsed(text: str | None) -> JobFile | Lines:
    """Return what a text says, or what is wrong with it."""
    if len(text or "") > MOST_CHARACTERS:
        return [(1, f"The text has more than {MOST_CHARACTERS} characters: maat submit takes it.")]
    try:
        return parse_job_file(text or "")
    except JobFileError as wrong:
        return [(wrong.row or 1, f"{wrong.field} {wrong.problem}. {wrong.remedy}")]


def _error_list(lines: Lines) -> Component:
    return html.Ul(
        [html.Li([html.B(f"Line {line}: "), words]) for line, words in sorted(lines)],
        className="wrong-lines",
    )


def _refused(lines: Component) -> html.Div:
    return html.Div(
        [html.Div("Tried: a submission would be refused", className="state-title"), lines],
        className="form-error",
        role="alert",
    )


def _to_paste(job: GivenJob, body: RawBody, kind: str, origin: str) -> str:
    if job.wrong:
        return f"Fill in the form first: {next(iter(job.wrong.values()))}"
    return _TO_PASTE[kind](body, origin=origin, indices=job.indices)


def _shown(body: RawBody, clusters: Clusters | None) -> RawBody:
    """Return the body as people read it: without defaults, its cluster by name."""
    shown = from_text.without_defaults(body)
    names = {one["value"]: one["label"] for one in clusters or ()}
    if "cluster_id" in shown:
        shown["cluster_id"] = names.get(shown["cluster_id"], shown["cluster_id"])
    return shown


def _same(body: RawBody, other: RawBody, clusters: Clusters | None) -> bool:
    """Return whether two bodies make the same job; one without a cluster goes to the other's."""
    try:
        one, two = from_text.declared(body), from_text.declared(other)
    except ValidationError:
        return body == other
    one["cluster_id"] = _cluster_id(body, clusters) or two["cluster_id"]
    return one == two


def _cluster_id(body: RawBody, clusters: Clusters | None) -> str | None:
    named = body.get("cluster_id")
    found = (one["value"] for one in clusters or () if named in (one["value"], one["label"]))
    return next(found, named)


def _played_filled(body: RawBody) -> Changes:
    values, preemptible = from_text.played_values(body)
    return {
        "played": values,
        "priorities": from_text.priorities(body),
        "preemptible": preemptible,
        "later": from_text.later_values(body),
    }


def _command_filled(body: RawBody, given: Given) -> Changes:
    """Fill the form of commands; rows of secrets stay if the text names the same ones."""
    values = from_text.run_values(body)
    secrets = body["run"].get("secret_env") or {}
    typed = [name for name in given["run_secrets"]["names"] if name]
    kept = typed == list(secrets) and not any(secrets.values())
    return {
        "run": {name: values[name] for name in FILLED},
        "switches": {name: values[name] for name in SWITCHES},
        "run_priorities": from_text.priorities(body),
        "run_later": from_text.later_values(body),
        **({} if kept else {"rows": secret_rows(secrets)}),
    }


def _with_some_secrets(body: RawBody) -> RawBody:
    """Return the body with a value for each secret: a trial stores none."""
    run = body.get("run") or {}
    if not isinstance(run, dict) or not run.get("secret_env"):
        return body
    return {**body, "run": {**run, "secret_env": dict.fromkeys(run["secret_env"], "tried")}}
