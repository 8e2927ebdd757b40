"""What became of a preview of the next round: followed, cancelled, and applied as it was tried."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

from dash import Dash, Input, Output, State, ctx, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import refused_state
from frontend.components.notices import notice, refusal
from frontend.pages.admin.policy_preview import UNENDED, preview_view
from maat.client import ApiError

PREFIX = "admin-policy"
_CHANGED = 412


class Asked(TypedDict):
    """The preview that is shown: its id, its cluster, and the change that it tries."""

    preview: str
    cluster: str
    operation: str


def register_result(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(follow, api),
        output={
            "result": Output(f"{PREFIX}-result", "children", allow_duplicate=True),
            "cancel": Output(f"{PREFIX}-cancel", "style"),
            "apply": Output(f"{PREFIX}-apply-box", "style", allow_duplicate=True),
            "off": Output(f"{PREFIX}-tick", "disabled", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "_tick": Input(f"{PREFIX}-tick", "n_intervals"),
            "_cancels": Input(f"{PREFIX}-cancel", "n_clicks"),
        },
        state={"asked": State(f"{PREFIX}-asked", "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(apply_change, api),
        output={
            "result": Output(f"{PREFIX}-result", "children", allow_duplicate=True),
            "apply": Output(f"{PREFIX}-apply-box", "style", allow_duplicate=True),
            "problem": Output(f"{PREFIX}-problem", "children", allow_duplicate=True),
            "changed": Output("admin-clusters-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input(f"{PREFIX}-apply", "n_clicks")},
        state={"asked": State(f"{PREFIX}-asked", "data")},
        prevent_initial_call=True,
        running=[(Output(f"{PREFIX}-apply", "loading"), True, False)],
    )


async def follow(api: Api, *, _tick: int, _cancels: int | None, asked: Asked | None) -> Changes:
    """Show how far the preview is, and its result; or cancel it."""
    if not asked:
        return {"off": True}
    try:
        async with api.visitor() as maat:
            if ctx.triggered_id == f"{PREFIX}-cancel" and is_press_of(f"{PREFIX}-cancel"):
                await maat.cancel_operation(asked["operation"])
            found = await maat.round_preview(asked["cluster"], asked["preview"])
    except Failure as error:
        return {"notices": refusal(error), "off": True, "cancel": HIDDEN}
    if found["state"] in UNENDED:
        return {"result": preview_view(found), "cancel": SHOWN}
    done = found["result"] is not None
    return {
        "result": preview_view(found),
        "cancel": HIDDEN,
        "apply": SHOWN if done else HIDDEN,
        "off": True,
    }


async def apply_change(api: Api, *, clicks: int | None, asked: Asked | None) -> Changes:
    """Apply what was tried, unless the cluster was changed since."""
    if not clicks or not asked:
        return NOTHING
    try:
        async with api.visitor() as maat:
            tried = await maat.round_preview(asked["cluster"], asked["preview"])
            version = tried["cluster_version"]
            changed = await maat.change_cluster(asked["cluster"], tried["request"], version=version)
    except Failure as error:
        if isinstance(error, ApiError) and error.status == _CHANGED:
            words = "Somebody has changed the cluster since this preview: preview again."
            return {"problem": html.P(["⚠ ", words], role="alert"), "apply": HIDDEN}
        return {"problem": refused_state(error)}
    decides = f"{changed['policy']} with {changed['placer']} decides from now on."
    words = " ".join([f"{changed['name']}: {decides}", *changed["notes"]])
    return {
        "result": None,
        "apply": HIDDEN,
        "problem": None,
        "changed": clicks,
        "notices": notice("Policy changed", words),
    }
