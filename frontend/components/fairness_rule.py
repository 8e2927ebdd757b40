"""The rules of finish-time fairness rho: their names, their meanings, and a selector.

The choice is kept in the page's address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output

from frontend.attributes import aria
from frontend.callbacks import in_browser
from frontend.routing import query_value
from maat.vocabulary import FairnessRule

RULES = tuple(FairnessRule)
MEANINGS: Mapping[FairnessRule, str] = {
    FairnessRule.MEAN_OF_RATIOS: (
        "a job against itself alone on its share of all GPUs, N / n, of each type in turn; "
        "the ratios averaged"
    ),
    FairnessRule.RATIO_TO_MEAN: (
        "a job against the mean of its times alone on its share of all GPUs, N / n, "
        "of each type in turn"
    ),
    FairnessRule.SHARE_OF_TYPE: (
        "a job against itself alone on its share of the GPUs of each type g, N_g / n; "
        "the ratios averaged"
    ),
}


def asked(rule: Any) -> FairnessRule:
    """The rule that an address names; the first where it names none, or none that there is."""
    named = query_value(rule)
    return next((known for known in RULES if known == named), RULES[0])


def selector(select_id: str, rule: Any) -> Any:
    """`rule`: what the address says."""
    return dmc.Select(
        id=select_id,
        data=[rule.value for rule in RULES],
        value=asked(rule).value,
        allowDeselect=False,
        size="xs",
        w=150,
        **aria("Rule of finish-time fairness"),
    )


def keep_in_address(app: Dash, select_id: str) -> None:
    in_browser(
        app,
        "ruleInUrl",
        Output(select_id, "id"),
        Input(select_id, "value"),
        prevent_initial_call=True,
    )


def meaning(rule: FairnessRule) -> str:
    """Return what rho compares under this rule, as a sentence; n: mean active jobs of its life."""
    return f"By {rule}: {MEANINGS[rule]}; n: active jobs, averaged over the job's life."
