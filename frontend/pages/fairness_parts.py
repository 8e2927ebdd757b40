"""Parts of the page of fairness: tiles, progress, and the table of the worst cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import UNHEARD, aria
from frontend.components.cards import card, empty_state, failed_tile, tile
from frontend.components.names import cut_name
from frontend.components.next_step import goes_to
from frontend.figures.fairness import SYMBOLS, Look, name_of
from frontend.formatting import ABSENT, clock, column, count, duration, number, percent, plural
from frontend.loading import Loaded
from maat.api.fairness import FairnessOut, JobFairnessOut, SharesOut, TenantRhoOut, WhyOut
from maat.api.reason_words import reason_words
from maat.vocabulary import FairnessState

MOST_REASONS = 2
MOST_NAMED = 4
JAIN = "Jain's index"


def tiles(
    found: Loaded[FairnessOut],
    worst: Sequence[JobFairnessOut] | None,
    shares: Loaded[SharesOut],
) -> list[Component]:
    """Three tiles of rho and one of shares; one that cannot be loaded says so in its place.

    `worst`: None if it could not be loaded.

    Raises:
        ApiError, Unreachable: Neither could be loaded.
    """
    if found.failure and shares.failure:
        raise found.failure
    of_rho = [failed_tile("rho", found.failure)] if found.failure else _rho_tiles(found(), worst)
    if shares.failure:
        return [*of_rho, failed_tile(JAIN, shares.failure)]
    whole = shares()["whole"]
    jain = None if whole is None else whole["jain_index"]
    return [*of_rho, tile(JAIN, number(jain), "of shares, actual over deserved")]


def _rho_tiles(found: FairnessOut, worst: Sequence[JobFairnessOut] | None) -> list[Component]:
    figures = found["all"]
    case = worst[0] if worst else None
    return [
        tile("Median rho", number(figures["median"]), f"mean {number(figures['mean'])}"),
        tile(
            "Worse off than alone",
            percent(figures["unfair_share"]),
            f"of {plural(figures['jobs'], 'job')} with a rho: above 1",
        ),
        tile(
            "Worst rho",
            number(figures["worst"]),
            case["job_name"] if case and case["rho"] == figures["worst"] else "a job",
            href=f"/jobs/{case['job_id']}" if case else None,
        ),
    ]


def verdict(found: FairnessOut) -> str:
    """Say how many jobs sharing made worse off than their share of the cluster alone."""
    figures = found["all"]
    jobs = figures["jobs"]
    if not jobs or figures["unfair_share"] is None:
        return "No job that has ended in this period has a rho yet."
    worse = percent(figures["unfair_share"])
    return (
        f"{worse} of {plural(jobs, 'job')} with a rho took longer than alone on their share; "
        f"the median took {number(figures['median'])} times as long."
    )


def progress(found: FairnessOut) -> Component | None:
    """How far rho is: a bar while jobs wait; then who has none, and why."""
    by_state, total = found["progress"]["by_state"], found["progress"]["total"]
    left = by_state[FairnessState.WAITING] + by_state[FairnessState.WORKING]
    lines: list[Component] = []
    if left:
        words = f"{count(total - left)} of {count(total)} worked out"
        head = [html.Span("rho is being worked out"), html.Span(words, className="caption")]
        bar = dmc.Progress(
            value=100 * (total - left) / total, size="sm", mt=6, **aria("Jobs worked out")
        )
        lines += [dmc.Group(head, justify="space-between"), bar]
    lines += [
        html.Div(f"{plural(one['jobs'], 'job')} without rho: {one['sentence']}", className="hint")
        for one in found["without_rho"]
    ]
    if found["older_versions"]:
        many = plural(found["older_versions"], "job has", "jobs have")
        lines.append(
            html.Div(f"{many} a rho by an older version of the formula.", className="hint")
        )
    return card(None, lines, mb=12) if lines else None


def legend(
    looks: Mapping[str | None, Look], tenants: Sequence[TenantRhoOut], shares: SharesOut | None
) -> Component:
    """Which colour and symbol stands for which tenant, in both charts."""
    held = [] if shares is None or shares["whole"] is None else shares["whole"]["tenants"]
    shown = {one["tenant"] for one in (*tenants, *held)}
    named = sorted(name for name in looks if name is not None and name in shown)
    others = [None] if None in shown or shown - looks.keys() else []
    return html.Div(
        [
            html.Span(
                [
                    html.Span(
                        SYMBOLS[looks[name].symbol],
                        style={"color": looks[name].colour},
                        **UNHEARD,
                    ),
                    " ",
                    cut_name(name_of(name)),
                ]
            )
            for name in (*named, *others)
        ],
        className="legend",
    )


def few_notice(found: FairnessOut) -> str:
    """Which tenants have too few jobs for a line, and how exact the lines are."""
    few = [name_of(one["tenant"]) for one in found["tenants"] if one["is_few"]]
    named = [*few[:MOST_NAMED], *([f"{len(few) - MOST_NAMED} more"] if few[MOST_NAMED:] else [])]
    lines = [f"Points: fewer than 30 jobs ({', '.join(named)})."] if few else []
    if error := found["quantile_error"]:
        lines.append(f"A long period is told from sums of days: lines and medians to {error:.0%}.")
    return " ".join(lines)


def definition_text(found: FairnessOut) -> list[Component]:
    formula = found["formula"]
    return [
        html.P(formula["text"]),
        html.P(formula["baseline"]),
        html.P(f"Rule {formula['rule']}, version {formula['version']}."),
    ]


def shares_text(found: SharesOut) -> list[Component]:
    index = (
        "Jain's index (Σx)² / (n Σx²) of x = actual over deserved, over the n tenants that "
        "deserved GPUs: 1 if all are treated alike."
    )
    return [html.P(found["formula"]), html.P(index)]


def worst_table(cases: Sequence[JobFairnessOut]) -> Component:
    if not cases:
        return empty_state(
            "No job of yours has a rho in this period",
            "Choose another period, or wait until one has ended.",
            action=goes_to("Choose another period", "fairness-period"),
        )
    heads = ("Job", "Tenant", "rho", "JCT", "Alone", "Why")
    numbers = {"rho", "JCT", "Alone"}
    head = [html.Th(name, className="number" if name in numbers else None) for name in heads]
    rho = column([one["rho"] for one in cases])
    rows = [_case(one, shown) for one, shown in zip(cases, rho, strict=True)]
    return html.Table(
        [html.Thead(html.Tr(head)), html.Tbody(rows)],
        className="plain-table",
    )


def _case(one: JobFairnessOut, rho: str) -> html.Tr:
    job = [
        dcc.Link(one["job_name"], href=f"/jobs/{one['job_id']}", title=one["job_id"]),
        html.Div(f"{one['model']}, ended {clock(one['finished_at'])}", className="caption"),
    ]
    return html.Tr(
        [
            html.Td(job),
            html.Td(cut_name(one["tenant"])),
            html.Td(rho, className="number"),
            html.Td(duration(one["jct_seconds"]), className="number"),
            html.Td(duration(one["baseline_seconds"]), className="number"),
            html.Td(why(one["why"]), className="wraps wide"),
        ]
    )


def why(told: WhyOut | None) -> list[Component] | str:
    """How a life was spent, and the main reasons of its waits."""
    if told is None:
        return ABSENT
    reasons = [
        f"{duration(one['seconds'])} {reason_words(one['code'])}"
        for one in told["reasons"][:MOST_REASONS]
        if one["seconds"] >= 1
    ]
    lines: list[Component] = [html.Div(told["sentence"])]
    if told["cause_sentence"]:
        lines.insert(0, html.Div(html.B(told["cause_sentence"])))
    return [*lines, html.Div("; ".join(reasons), className="caption")] if reasons else lines
