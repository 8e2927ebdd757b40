"""The pictures: which page, in which state, after which presses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from playwright.sync_api import Page

State = Literal["full", "empty", "failing", "loading", "stranger", "first"]
Steps = Callable[[Page], None]


@dataclass(frozen=True)
class Picture:
    """One page in one state.

    `path` may name what the world has made, as in `/jobs/{waiting}`. `steps`: presses after the
    page has come; then only the window is taken, since a dialog covers no more.
    `state`: whose service; `stranger` has no account, `first` has never been there.
    """

    name: str
    path: str
    state: State = "full"
    steps: Steps | None = None


PAGES = {
    "overview": "/",
    "cluster": "/cluster",
    "jobs": "/jobs",
    "submit": "/submit",
    "rounds": "/rounds",
    "simulate": "/simulate",
    "fairness": "/fairness?period=this-month",
    "calibration": "/calibration",
    "sweeps": "/sweeps",
    "experiments": "/experiments",
    "experiments-tuning": "/experiments?kind=tuning",
    "measurements": "/measurements",
    "papers": "/papers",
    "usage": "/usage",
    "reports": "/reports",
    "account": "/account",
    "help-terms": "/help",
    "admin-users": "/admin",
    "admin-clusters": "/admin?tab=clusters",
    "admin-quotas": "/admin?tab=quotas",
    "admin-webhooks": "/admin?tab=webhooks",
    "admin-health": "/admin?tab=health",
    "admin-audit": "/admin?tab=audit",
}
OF_SOMETHING = {
    "job-running": "/jobs/{running}",
    "job-waiting": "/jobs/{waiting}",
    "job-ended": "/jobs/{ended}",
    "simulation": "/simulations/{simulation}",
    "sweep": "/sweeps/{sweep}",
    "autoscaling": "/experiments/{autoscaling}",
    "tuning": "/experiments/{tuning}",
}
SACCT = """\
JobIDRaw|Account|Submit|Start|End|State|AllocTRES
1|vision|2026-01-05T10:00:00|2026-01-05T10:01:00|2026-01-05T11:01:00|COMPLETED|gres/gpu:a100=4
2|nlp|2026-01-05T10:05:00|Unknown|Unknown|CANCELLED by 7|gres/gpu=1
3|nlp|2026-01-05T10:06:00|2026-01-05T10:07:00|2026-01-05T10:17:00|FAILED|gres/gpu:titan=1
"""


def press(selector: str) -> Steps:
    """Press the first that matches, and wait for the dialog that it opens."""

    def steps(page: Page) -> None:
        page.locator(selector).locator("visible=true").first.click()
        page.get_by_role("dialog").wait_for()

    return steps


def _import(page: Page) -> None:
    page.get_by_text("Import", exact=True).click()
    file: Any = {"name": "jobs.txt", "mimeType": "text/plain", "buffer": SACCT.encode()}
    page.locator("#simulate-import-upload input[type=file]").set_input_files(file)
    page.get_by_text("1 job of 3 rows").wait_for()


def _csv(page: Page) -> None:
    page.get_by_text("CSV file", exact=True).click()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


def _refused(page: Page) -> None:
    page.locator("#submit-button").click()
    page.locator(".mantine-InputWrapper-error").first.wait_for()


def _tried(page: Page) -> None:
    page.locator("#submit-name").fill("tried")
    page.locator("#submit-try").click()
    page.get_by_text("Tried, not submitted").wait_for()


def _forecast(page: Page) -> None:
    page.locator("#submit-forecast-ask").click()
    page.locator("#submit-forecast").get_by_text("Who ends later or earlier").wait_for()


def _what_if(page: Page) -> None:
    page.locator("#what-if-ask").click()
    page.locator("#what-if-sides").get_by_text("Bound on moves").wait_for()
    page.locator("#what-if-open").scroll_into_view_if_needed()


def _policy(page: Page) -> None:
    page.locator("#admin-policy-policy").click()
    page.get_by_role("option", name="FIFO", exact=True).click()
    page.locator("#admin-policy-preview").click()
    page.locator("#admin-policy-sides").get_by_text("Restarts of running jobs").wait_for()
    page.locator("#admin-policy-sides").scroll_into_view_if_needed()


def _past(page: Page) -> None:
    page.locator("#past-back").click()
    page.wait_for_url("**round=*")


def _numbers(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


def _table(page: Page) -> None:
    page.get_by_role("button", name="Show the chart as a table").first.click()


def _navigation(page: Page) -> None:
    button = page.get_by_role("button", name="Show or hide the navigation")
    page.set_viewport_size({"width": 390, "height": 844})
    button.click()


def _tour(page: Page) -> None:
    page.get_by_role("region", name="What am I looking at?").wait_for()


DIALOGS = [
    Picture("help", "/measurements", steps=press("#help-open")),
    Picture("tour", "/", "first", _tour),
    Picture("navigation", "/measurements", steps=_navigation),
    Picture("submit-refused", "/submit", steps=_refused),
    Picture("submit-tried", "/submit", steps=_tried),
    Picture("submit-what-if", "/submit", steps=_forecast),
    Picture("submit-table", "/submit", steps=_table),
    Picture("job-remedy", "/jobs/{waiting}", steps=press(".remedies button")),
    Picture("job-numbers", "/jobs/{waiting}", steps=_numbers),
    Picture("job-edit", "/jobs/{nightly}", steps=press("#job-edit-open")),
    Picture("job-cancel", "/jobs/{running}", steps=press("#job-cancel")),
    Picture("jobs-bulk", "/jobs", steps=press("#jobs-bulk")),
    Picture("jobs-view", "/jobs?q=long", steps=press("#jobs-view-ask")),
    Picture("jobs-none", "/jobs?q=no-such-job"),
    Picture("cluster-reserve", "/cluster", steps=press("#cluster-reserve-open")),
    Picture("cluster-drain", "/cluster?cluster=small", steps=press("[aria-label^='drain ']")),
    Picture("cluster-past", "/cluster", steps=_past),
    Picture("cluster-what-if", "/cluster?stay=600&moves=4", steps=_what_if),
    Picture("simulate-import", "/simulate", steps=_import),
    Picture("simulate-csv", "/simulate", steps=_csv),
    Picture("simulate-replay", "/simulate?replay=24"),
    Picture("sweeps-csv", "/sweeps", steps=_csv),
    Picture("measurements-delete", "/measurements", steps=press("[aria-label^='Delete the ']")),
    Picture("usage-price", "/usage", steps=press("#usage-price-add button")),
    Picture("reports-schedule", "/reports", steps=press("#reports-add")),
    Picture("reports-delete", "/reports", steps=press("#reports-kept [aria-label^='Delete']")),
    Picture("admin-user", "/admin", steps=press("#admin-users button")),
    Picture("admin-cluster", "/admin?tab=clusters", steps=press("[aria-label^='Change demo']")),
    Picture("admin-node", "/admin?tab=clusters", steps=press("[aria-label^='Drain: ']")),
    Picture("admin-policy", "/admin?tab=clusters", steps=_policy),
    Picture("admin-quota", "/admin?tab=quotas", steps=press("#admin-quota-add button")),
    Picture("admin-webhook", "/admin?tab=webhooks", steps=press("#admin-webhook-add button")),
    Picture("wrong-address", "/reports?period=someday"),
    Picture("no-such-job", "/jobs/job_nope"),
    Picture("not-found", "/no/such/page"),
    Picture("sign-in", "/", "stranger"),
]


def all_pictures() -> Sequence[Picture]:
    """Every page with data; dialogs and what presses show; pages without data, failing, loading."""
    pages = {**PAGES, **OF_SOMETHING}
    return [
        *(Picture(f"{name}-full", path) for name, path in pages.items()),
        *DIALOGS,
        *(Picture(f"{name}-empty", path, "empty") for name, path in PAGES.items()),
        *(Picture(f"{name}-failing", path, "failing") for name, path in pages.items()),
        *(Picture(f"{name}-loading", path, "loading") for name, path in pages.items()),
    ]
