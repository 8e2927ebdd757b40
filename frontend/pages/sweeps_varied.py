"""The settings that a sweep varies: their fields, examples of values, and which a policy has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import Changes, answer, in_browser
from frontend.forms import FormValues
from maat.api.policies import DescribedOut
from maat.client import calls

NOTHING = "nothing"
VARIED = (
    ("p", "Fairness power p", "-1, -0.5, 0.5, 1"),
    ("idle_penalty", "Idle penalty lambda", "1.1, 2, 4"),
    ("round_seconds", "Round duration (s)", "60, 120, 300"),
    ("arrival_rate", "Arrival rate, relative to the trace", "0.5, 1, 2"),
    ("jobs", "Number of generated jobs", "80, 160, 320"),
    ("jobs_per_hour", "Arrival rate of generated jobs (jobs/h)", "10, 20, 30"),
    ("profiling", "Profiling mode", "oracle, requested, bootstrap, two-counts, no-profile"),
    ("rigid_share", "Share of rigid jobs", "0, 0.5, 1"),
    ("strong_scaling_share", "Share of strong-scaling jobs", "0, 0.5, 1"),
    ("tuned", "Tuned jobs", "none, best-batch, any-pair"),
    ("interference", "Slowdown of jobs on one GPU", "1, 1.25, 1.5"),
    ("locality_penalty", "Slowdown across nodes", "1, 1.5, 2"),
    ("rack_penalty", "Further slowdown across racks", "1, 1.5, 2"),
    ("network_contention", "Network contention of distributed jobs", "0, 0.25, 0.5"),
    ("least_stay_seconds", "Least stay of a job (s)", "none, 600, 1800"),
    ("most_moves_per_hour", "Most moves of a job in an hour", "none, 4, 2"),
    ("cluster_size", "Cluster size and jobs, times", "1, 2, 4"),
    ("policy", "Policy", "sia, fifo, srtf"),
    ("placer", "Placer", "packed-sticky, pm-first, pal"),
)
EXAMPLES = {name: example for name, _, example in VARIED}
OF_POLICIES = ("p", "idle_penalty")  # settings that a policy may lack
_NOTHING_ELSE = (NOTHING, "Nothing else")


def varied_fields() -> list[Component]:
    """What is varied, and perhaps a second setting, each with its values."""
    settings = [(name, title) for name, title, _ in VARIED]
    values = dmc.TextInput(id="sweeps-values1", label="Values", value=EXAMPLES[settings[0][0]])
    more = dmc.TextInput(id="sweeps-values2", label="Values", value="", disabled=True)
    return [
        row_of(choice_of("sweeps-vary1", "Vary", settings), values),
        row_of(choice_of("sweeps-vary2", "And, one line each", [_NOTHING_ELSE, *settings]), more),
        html.Div(id="sweeps-vary-says", className="hint", role="status"),
    ]


def row_of(*fields: Component) -> html.Div:
    return html.Div(list(fields), className="form-row")


def choice_of(select_id: str, label: str, options: Sequence[tuple[str, str]]) -> dmc.Select:
    return dmc.Select(
        id=select_id,
        label=label,
        data=choices_of(options),
        value=options[0][0],
        allowDeselect=False,
    )


def choices_of(options: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"value": value, "label": text} for value, text in options]


def register_settings(app: Dash, api: Api) -> None:
    """Register what the settings offer, and the values that they begin with."""
    answer(
        app,
        partial(offer_settings, api),
        output={
            **{
                f"{what}{which}": Output(f"sweeps-vary{which}", prop)
                for which in ("1", "2")
                for what, prop in (("offered", "data"), ("chosen", "value"))
            },
            "says": Output("sweeps-vary-says", "children"),
        },
        inputs={"policy": Input("sweeps-policy", "value")},
        state={"chosen": {name: State(f"sweeps-{name}", "value") for name in ("vary1", "vary2")}},
    )
    # In the browser: an answer of the service could overwrite values typed meanwhile.
    for which in ("1", "2"):
        in_browser(
            app,
            "exampleValues",
            Output(f"sweeps-values{which}", "value"),
            Output(f"sweeps-values{which}", "disabled"),
            Input(f"sweeps-vary{which}", "value"),
            State("sweeps-examples", "data"),
            prevent_initial_call=True,
        )


async def offer_settings(api: Api, *, policy: str | None, chosen: FormValues) -> Changes:
    """Offer what the policy can be given. What it lacks gives way to the next, and is told."""
    try:
        async with api.visitor() as maat:
            policies = (await maat.send(calls.policies()))["items"]
    except Failure:
        return {}
    one = next((each for each in policies if each["name"] == policy), None)
    return {} if one is None else settings_for(one, chosen)


def settings_for(policy: DescribedOut, chosen: FormValues) -> Changes:
    """Return the settings that a policy has, and what the fields hold if theirs are not there."""
    own = {parameter["name"] for parameter in policy["parameters"]}
    titles = {name: title for name, title, _ in VARIED}
    lacking = [name for name in OF_POLICIES if name not in own]
    settings = [(name, title) for name, title in titles.items() if name not in lacking]
    lost = [name for name in (chosen["vary1"], chosen["vary2"]) if name in lacking]
    first = next(name for name, _ in settings if name != chosen["vary2"])
    said = " and ".join(titles[name].lower() for name in lost)
    return {
        "offered1": choices_of(settings),
        "offered2": choices_of([_NOTHING_ELSE, *settings]),
        "says": f"{policy['title']} has no {said}: it cannot be varied." if lost else "",
        **({"chosen1": first} if chosen["vary1"] in lost else {}),
        **({"chosen2": NOTHING} if chosen["vary2"] in lost else {}),
    }
