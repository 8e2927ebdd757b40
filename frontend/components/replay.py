"""A cluster's last hours under another policy: the link to the form, and how the form is filled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict

from dash import dcc

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes
from frontend.components.cards import link_button
from frontend.forms import FormValues
from frontend.shell import NO_CLUSTER
from maat.api.clusters import NodeOut
from maat.client import AsyncClient, calls
from maat.client.calls import RawBody
from maat.client.shapes import shape_in_service

YESTERDAY_HOURS = 24
MOST_HOURS = 8784
OTHERS = ("sia", "gavel", "srtf")  # two of them beside the live policy
OF_THE_LIVE_RUN = ("policy", "policy_parameters", "placer", "placer_parameters")
OF_THE_LIVE_CLUSTER = ("round_seconds", "jobs_per_gpu", "interference")


def replay_link() -> dcc.Link:
    """A button to the form that replays the last day of the shown cluster, filled."""
    return link_button("Replay under another policy", f"/simulate?replay={YESTERDAY_HOURS}")


class Kept(TypedDict):
    """Fields that an address fills, and the cluster that it names."""

    cluster: str | None
    fields: list[str]


async def fill(api: Api, *, hours: int | None, cluster_id: str | None, kept: Kept) -> Changes:
    """Fill the form with the cluster as it is: its GPUs, its policy, and two others.

    What the address says of this cluster's replay stays.
    """
    if hours is None or cluster_id in (None, NO_CLUSTER):
        return NOTHING
    try:
        async with api.visitor() as maat:
            live = await maat.send(calls.cluster(str(cluster_id)))
            nodes = await _nodes(maat, live["id"])
    except Failure:
        return NOTHING
    others = [policy for policy in OTHERS if policy != live["policy"]][:2]
    shares = live["jobs_per_gpu"] > 1
    of_cluster = OF_THE_LIVE_CLUSTER if shares else OF_THE_LIVE_CLUSTER[:1]
    settings = {name: live[name] for name in (*OF_THE_LIVE_RUN, *of_cluster)}  # type: ignore[literal-required]
    filled = {
        "name": f"Replay of {live['name']}, last {hours} h",
        "gpus": shape_in_service(nodes),
        "policies": [live["policy"], *others],
    }
    stays = kept["fields"] if kept["cluster"] == cluster_id else ()
    return {
        **{name: value for name, value in filled.items() if name not in stays},
        "live": json.dumps(settings),
        "says": f"{live['policy']} is played as it is set on {live['name']}, with a round every "
        f"{live['round_seconds']:g} s for all. All runs begin with free GPUs: jobs that had begun "
        "come with the work that was left, jobs that waited with all of theirs.",
    }


async def _nodes(maat: AsyncClient, cluster_id: str) -> list[NodeOut]:
    page = await maat.send(calls.nodes(cluster_id))
    found = list(page["items"])
    while page["next_cursor"] is not None:
        page = await maat.send(calls.nodes(cluster_id, cursor=page["next_cursor"]))
        found += page["items"]
    return found


def live_settings(form: FormValues) -> Mapping[str, Any]:
    """Return the policy, placer and pace of the cluster that the form was filled for, if it was."""
    text = form.get("live")
    return json.loads(text) if form["kind"] == "cluster" and text else {}


def as_live(run: RawBody, live: Mapping[str, Any]) -> RawBody:
    """Return the run with the live settings, if it has the live policy and none of its own."""
    is_bare = run.keys() <= {"policy", "seed", "tuned", "policy_parameters"}
    if not live or run["policy"] != live["policy"] or run.get("policy_parameters") or not is_bare:
        return run
    return run | {name: live[name] for name in OF_THE_LIVE_RUN}


def wrong_hours(value: object) -> str:
    """Return what is wrong with the hours of a window; nothing for an empty field."""
    if value in ("", None):
        return ""
    fits = isinstance(value, int | float) and 0 < value <= MOST_HOURS
    return "" if fits else f"Give more than 0 and at most {MOST_HOURS} hours, or leave it empty."
