"""What a submission would make, shown below the form before it is made."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.components.cards import refused_state
from frontend.components.states import gpu_chip
from frontend.formatting import plural
from maat.api.job_answers import DryRunOut
from maat.api.job_words import place_words, warning_words
from maat.client import ApiError
from maat.client.calls import RawBody


async def tried(api: Api, body: RawBody, *, jobs: int) -> Component | ApiError:
    """Return what the service says of the body; what it refuses is returned as it is.

    `jobs`: of an array that is to be made of it; one is tried.
    """
    try:
        async with api.visitor() as maat:
            found = await maat.try_job(body)
    except ApiError as error:
        return error
    except Failure as error:
        return refused_state(error)
    return shown_try(found, jobs=jobs)


def shown_try(found: DryRunOut, *, jobs: int = 1) -> Component:
    """The sentence, the place in the queue, and the GPU types on which it could run."""
    types = [
        html.Div(
            [
                gpu_chip(one["gpu_type"]),
                html.Span(
                    f"from {one['least_gpus']} of {plural(one['cluster_gpus'], 'GPU')}",
                    className="caption",
                ),
            ],
            className="legend",
        )
        for one in found["runs_on"]
    ]
    several = f"Each of the {jobs} jobs counts like this one." if jobs > 1 else ""
    warned = [warning_words(one) for one in found["warnings"]]
    lines = [found["sentence"], *warned, queue_words(found), several]
    return html.Div(
        [
            html.Div("Tried, not submitted", className="state-title"),
            *(html.P(line) for line in lines if line),
            *types,
        ],
        className="told",
        role="status",
    )


def queue_words(found: DryRunOut) -> str:
    """Return where the job would stand among those that wait."""
    if not found["waiting"]:
        return "No job waits on the cluster now."
    return place_words(found["waiting"], found["position"], would="it would be")
