"""The form of a schedule of reports."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import dash_mantine_components as dmc
from dash import dcc, html

from frontend.attributes import HIDDEN, aria, submits
from frontend.components.dialogs import dialog

EVERY = (("week", "Each Monday"), ("month", "Each first of a month"))
CHANNELS = (("webhook", "Webhook"), ("folder", "Folder"))
FORMS = (("pdf", "PDF"), ("csv", "CSV"), ("json", "JSON"))
FIELDS = ("name", "every", "hour", "channel", "url", "secret", "forms")


def schedule_dialog() -> dmc.Modal:
    return dialog("reports-ask", "Report by schedule", _form())


def _form() -> html.Div:
    return html.Div(
        [
            html.Div(id="reports-schedule-problem"),
            dmc.TextInput(
                id="reports-schedule-name",
                label="Name",
                placeholder="by which it is found again",
                value="",
            ),
            _choice("every", "When", EVERY, "week"),
            dmc.NumberInput(
                id="reports-schedule-hour",
                label="Hour of the day (UTC, wall time)",
                value=6,
                min=0,
                max=23,
                allowDecimal=False,
            ),
            _choice("channel", "Where to", CHANNELS, "webhook"),
            html.Div(
                [
                    dmc.TextInput(
                        id="reports-schedule-url",
                        label="URL",
                        placeholder="https://hooks.example.com/reports",
                        value="",
                    ),
                    dmc.PasswordInput(
                        id="reports-schedule-secret",
                        label="Secret that signs, at least 16 characters",
                        value="",
                        autoComplete="new-password",
                    ),
                ],
                id="reports-schedule-webhook",
                className="form-stack",
            ),
            html.Div(
                "Files go to the folder that the operator set, below a folder of this schedule.",
                id="reports-schedule-folder",
                className="hint",
                style=HIDDEN,
            ),
            dmc.CheckboxGroup(
                _boxes(FORMS),
                id="reports-schedule-forms",
                label="Files",
                value=["pdf"],
            ),
            html.Div(
                "It covers the week or month before, of the cluster's calendar.",
                className="hint",
            ),
            dmc.Group([dmc.Button("Add", id="reports-schedule-add", n_clicks=0)], mt=4),
            dcc.Store(id="reports-schedule-key", data=uuid4().hex),
        ],
        className="form-stack",
        **submits("reports-schedule-add"),
    )


def _boxes(choices: Sequence[tuple[str, str]]) -> dmc.Group:
    return dmc.Group([dmc.Checkbox(label=label, value=value) for value, label in choices], gap=24)


def _choice(field: str, label: str, choices: tuple[tuple[str, str], ...], value: str) -> html.Div:
    control = dmc.SegmentedControl(
        id=f"reports-schedule-{field}",
        data=[{"value": value, "label": words} for value, words in choices],
        value=value,
        fullWidth=True,
        size="xs",
        transitionDuration=0,
        **aria(label),
    )
    return html.Div([html.Label(label, className="mantine-InputWrapper-label"), control])
