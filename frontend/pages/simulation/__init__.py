"""One simulation: its progress while it runs, then the comparison of its runs."""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page, among, anything
from frontend.api import Api
from frontend.components import fairness_rule
from frontend.components.operations import register_cancel
from frontend.pages.simulation import callbacks, contest, side_by_side
from frontend.pages.simulation.layout import layout
from frontend.routing import register_cluster, register_title
from maat.client import calls

TAKES = {
    "rule": among("rule of fairness", fairness_rule.RULES),
    "first": anything,
    "second": anything,
    "job": anything,
}


def register(app: Dash, api: Api) -> None:
    register_cluster(app, "simulation")
    register_title(app, "simulation")
    add_page(
        __name__,
        path_template="/simulations/<simulation_id>",
        name="Simulation",
        title="Simulation",
        layout=layout,
        takes=TAKES,
    )
    contest.register(app, api)
    side_by_side.register(app, api)
    fairness_rule.keep_in_address(app, "simulation-rule")
    register_cancel(app, api, "simulation", calls.simulation, stays="What has finished stays.")
    callbacks.register(app, api)
