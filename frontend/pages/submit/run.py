"""The submit form where the cluster runs commands: it asks for one instead of a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, NOTICES, Changes, Sources, answer, as_inputs
from frontend.components.next_round import next_round
from frontend.components.notices import submitted
from frontend.formatting import plural
from frontend.forms import FormValues, Told, errors_by_field, still_wrong
from frontend.pages.submit.fields import SHOWN
from frontend.pages.submit.later import (
    LATER,
    indices_of,
    later_body,
    later_place,
    later_sources,
    of_job,
    register_later,
    submit_all,
    unfinished_later,
)
from frontend.pages.submit.model import EMPTY_NAME, Capacity
from frontend.pages.submit.run_fields import run_id
from frontend.pages.submit.run_model import (
    FIELDS,
    FOLDED,
    SHAPED,
    SWITCHES,
    body_of,
    meaningless,
    place_of,
    secrets_of,
    shown_values,
    unfinished,
)
from frontend.pages.submit.run_secrets import ROWS, register_secrets, secret_sources
from frontend.pages.submit.trying import tried
from frontend.shell import NO_CLUSTER
from maat.client import ApiError
from maat.client.errors import FieldProblem
from maat.colours import gpu_order
from maat.vocabulary import ExecutorKind

_BOXES = (*SHAPED, "profile")


def register(app: Dash, api: Api) -> None:
    register_secrets(app)
    answer(
        app,
        partial(choose, api),
        output={
            f"{form}{place}": Output(f"submit-{form}{place}", "opened")
            for form in ("played", "run")
            for place in ("", "-beside")
        },
        inputs={"cluster_id": Input("cluster-select", "value")},
    )
    answer(
        app,
        offer,
        output={"types": Output(run_id("gpu_types"), "data")},
        inputs={"capacity": Input("submit-capacity", "data")},
    )
    answer(
        app,
        shape,
        output={
            "boxes": {name: Output(run_id(name) + "-box", "style") for name in _BOXES},
            "asterisk": Output(run_id("batch_size"), "withAsterisk"),
            "placeholder": Output(run_id("batch_size"), "placeholder"),
        },
        inputs={"adaptivity": Input(run_id("adaptivity"), "value")},
    )
    _register_submission(app, api)


def _register_submission(app: Dash, api: Api) -> None:
    register_later(app, "submit-run", told="submit-run-told")
    state: dict[str, Any] = {
        "values": {
            **{name: State(run_id(name), "value") for name in FIELDS if name != "secrets"},
            **{name: State(run_id(name), "checked") for name in SWITCHES},
        },
        "secrets": secret_sources(State),
    }
    answer(
        app,
        partial(submit, api),
        output={
            "told": Output("submit-run-told", "data"),
            "problem": Output("submit-run-problem", "children"),
            "open": Output("submit-run-more", "open"),
            "later_open": Output("submit-run-later", "open"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": NOTICES,
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-run-button", "n_clicks")},
        state={
            **state,
            "later": later_sources("submit-run", State),
            "cluster_id": State("cluster-select", "value"),
            "key": State("submit-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-run-button", "loading"), True, False)],
    )
    _register_try(app, api, state)
    plain = [name for name in FIELDS if name not in ("secrets", "adaptivity")]
    answer(
        app,
        tell,
        output={
            **{name: Output(run_id(name), "error") for name in plain},
            "adaptivity": Output(run_id("adaptivity") + "-error", "children"),
            "secrets": Output(f"{ROWS}-error", "children"),
        },
        inputs={"told": Input("submit-run-told", "data"), **as_inputs(state)},
        prevent_initial_call=True,
    )


def _register_try(app: Dash, api: Api, state: Sources) -> None:
    answer(
        app,
        partial(try_it, api),
        output={
            "told": Output("submit-run-told", "data", allow_duplicate=True),
            "problem": Output("submit-run-problem", "children", allow_duplicate=True),
            "open": Output("submit-run-more", "open", allow_duplicate=True),
            "later_open": Output("submit-run-later", "open", allow_duplicate=True),
            "tried": Output("submit-run-tried", "children"),
        },
        inputs={"clicks": Input("submit-run-try", "n_clicks")},
        state={
            **state,
            "later": later_sources("submit-run", State),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-run-try", "loading"), True, False)],
    )


async def choose(api: Api, *, cluster_id: str | None) -> Changes:
    """Show the form of commands for a cluster that runs them, else the form of models."""
    if cluster_id is None:
        return NOTHING
    runs = False
    if cluster_id != NO_CLUSTER:
        try:
            async with api.visitor() as maat:
                runs = (await maat.cluster(cluster_id))["executor"] != ExecutorKind.SIMULATED
        except Failure:
            return NOTHING
    played = not runs
    return {"played": played, "played-beside": played, "run": runs, "run-beside": runs}


async def offer(*, capacity: Capacity | None) -> Changes:
    """Offer the GPU types of the cluster."""
    types = [
        {"value": name, "label": f"{name} ({plural(capacity[name], 'GPU')})"}
        for name in gpu_order(capacity or {})
        if capacity
    ]
    return {"types": types}


async def shape(*, adaptivity: str) -> Changes:
    """Hide the numbers that mean nothing for such a script."""
    hidden, rigid = meaningless(adaptivity), adaptivity == "rigid"
    return {
        "boxes": {name: HIDDEN if name in hidden else SHOWN for name in _BOXES},
        "asterisk": not rigid,
        "placeholder": "if it reports" if rigid else "",
    }


async def submit(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    secrets: Mapping[str, list[str | None]],
    later: FormValues,
    cluster_id: str | None,
    key: str,
) -> Changes:
    """Submit the command, or say beside the fields what is wrong."""
    if not clicks:
        return NOTHING
    filled = {**values, "secrets": secrets_of(secrets["names"], secrets["values"])}
    wrong = unfinished(filled) | unfinished_later(later)
    if wrong:
        return {**_form_state(filled, later, {}, wrong), "problem": None}
    try:
        async with api.visitor() as maat:
            body = body_of(filled, cluster_id=cluster_id)
            made = await submit_all(maat, body, later, key=key)
            considered = await next_round(maat, cluster_id, "it")
    except Failure as error:
        return {**_refusal(error, filled, later), "key": uuid4().hex}
    return {
        "told": None,
        "problem": None,
        "go": made.where,
        "notices": submitted(made.what, considered, made.warnings),
    }


async def try_it(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    secrets: Mapping[str, list[str | None]],
    later: FormValues,
    cluster_id: str | None,
) -> Changes:
    """Say what the submission would make, or what is wrong with it."""
    if not clicks:
        return NOTHING
    filled = {**values, "secrets": secrets_of(secrets["names"], secrets["values"])}
    wrong = unfinished(filled) | unfinished_later(later)
    if wrong:
        return {**_form_state(filled, later, {}, wrong), "problem": None, "tried": None}
    body = {**body_of(filled, cluster_id=cluster_id), **later_body(later)}
    found = await tried(api, body, jobs=len(indices_of(later["array"]) or [0]))
    if isinstance(found, ApiError):
        return {**_refusal(found, filled, later), "tried": None}
    return {"told": None, "problem": None, "tried": found}


def _refusal(error: Exception, filled: FormValues, later: FormValues) -> Changes:
    beside, above = errors_by_field(error, _place, empty_name=EMPTY_NAME)
    return {**_form_state(filled, later, beside, beside), "problem": above}


def _place(problem: FieldProblem) -> str | None:
    (inner,) = of_job([problem])
    return later_place(inner) or place_of(inner)


def _form_state(
    filled: FormValues, later: FormValues, refused: Mapping[str, str], wrong: Mapping[str, str]
) -> Changes:
    """Return what was told, and unfold the fields that are folded where one of them is wrong."""
    opened = {"open": True} if FOLDED & wrong.keys() else {}
    if wrong.keys() & set(LATER):
        opened["later_open"] = True
    told = Told(values={**shown_values(filled), **later}, errors=dict(refused))
    return {"told": told, **opened}


async def tell(
    *, told: Told | None, values: FormValues, secrets: Mapping[str, list[str | None]]
) -> Changes:
    """Say what is wrong from the first press on, for as long as it is."""
    filled = {**values, "secrets": secrets_of(secrets["names"], secrets["values"])}
    wrong = still_wrong(shown_values(filled), told, unfinished(filled))
    return {name: wrong.get(name, "") for name in FIELDS}
