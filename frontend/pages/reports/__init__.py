"""Reports for managers: a period as it will be forwarded, its files, kept reports, schedules."""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page, anything
from frontend.api import Api
from frontend.components.period import period_parameters, register_period
from frontend.pages.reports.deleting import register_deleting
from frontend.pages.reports.kept import register_kept
from frontend.pages.reports.layout import PAGE, layout
from frontend.pages.reports.schedules import register_schedules
from frontend.pages.reports.shown import register_shown


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/reports",
        name="Reports",
        title="Reports",
        order=8,
        layout=layout,
        takes={**period_parameters(), "tenant": anything},
    )
    register_period(app, PAGE)
    register_shown(app, api)
    register_kept(app, api)
    register_schedules(app, api)
    register_deleting(app, api)
