"""Walks what users ask for in Chromium, and counts presses.

`python -m benchmarks.service.tasks URL`: the service at URL is a demo (`maat up`) that has played
its history. If it has no cluster `tasks`, this makes it, with one waiting job. Each task begins on
the overview; a click, a key and a word that is typed are one press each. A task that does not find
what it looks for fails.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, sync_playwright
from rich.console import Console

from benchmarks.table import Cell, Figures, show
from maat.client import Client

NAME, WAITING, HOLDING = "tasks", "needs eight", "holds all"
PATIENCE_SECONDS = 120.0
PATIENCE_MILLISECONDS = 60_000
SEEN = "try { localStorage.setItem('maat-tour', 'seen'); } catch (none) { /* no page yet */ }"


@dataclass
class Walk:
    """A visitor who counts presses. `own`: the address of the cluster `tasks` on a page."""

    page: Page
    url: str
    presses: int = 0

    def begin(self, cluster: str | None = None) -> None:
        self.page.goto(self.url + (f"/?cluster={cluster}" if cluster else "/"))
        self.page.locator(".tile-value").first.wait_for()
        self.presses = 0

    def click(self, where: str | Locator) -> None:
        found = self.page.locator(where) if isinstance(where, str) else where
        found.locator("visible=true").first.click()
        self.presses += 1

    def to(self, page: str) -> None:
        self.click(self.page.locator(".nav").get_by_text(page, exact=True))

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def option(self, field: str, name: str) -> None:
        self.click(f"#{field}")
        self.click(self.page.get_by_role("option", name=name))

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.presses += 1

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.presses += 1

    def reads(self, where: str, words: str) -> str:
        """Wait for words that match on the page; return them."""
        found = self.page.locator(where).filter(has_text=re.compile(words)).first
        found.wait_for()
        told = re.search(words, " ".join(found.inner_text().split()))
        return told[0] if told else ""


Task = Callable[[Walk], str]


def why_pending(walk: Walk) -> str:
    walk.begin(NAME)
    return walk.reads("main", "Other jobs hold the GPUs that it needs")


def what_would_start_it(walk: Walk) -> str:
    walk.begin(NAME)
    walk.click(walk.page.get_by_role("link", name=WAITING))
    told = walk.reads(".remedies", r"Ask for 4 GPUs instead of 8")
    walk.press("Change it so")
    walk.page.get_by_role("dialog").get_by_text("now").first.wait_for()
    walk.press("Leave it")
    return told


def when_it_starts(walk: Walk) -> str:
    walk.begin(NAME)
    walk.click(walk.page.get_by_role("link", name=WAITING))
    place = walk.reads(".explanation", r"it is number \d+")
    return f"{place}. {walk.reads('#job-forecast', 'Starts [^.]+[.]')}"


def largest_that_fits(walk: Walk) -> str:
    walk.begin(NAME)
    walk.to("Cluster")
    return walk.reads("#cluster-verdict", r"at most [^.]+ together")


def use_of_yesterday(walk: Walk) -> str:
    walk.begin()
    walk.to("Usage & cost")
    walk.page.locator("#usage-table table").wait_for()
    walk.option("usage-period", "Yesterday")
    return walk.reads("main", r"\d+ % of all GPU-hours were allocated")


def share_of_tenants(walk: Walk) -> str:
    walk.begin()
    walk.to("Fairness")
    return walk.reads("main", r"Shares of the GPUs, deserved and actual")


def why_it_moved(walk: Walk) -> str:
    walk.begin()
    walk.to("Jobs")
    walk.click(".ag-row a")
    return walk.reads("#job-events", r"What happened")


def find_a_job(walk: Walk) -> str:
    walk.begin(NAME)
    walk.keys("/")
    walk.page.wait_for_url("**/jobs**")
    walk.page.locator("#jobs-search:focus").wait_for()
    walk.write("needs")
    walk.page.get_by_text("1 match").wait_for()
    walk.click(".ag-row a")
    return walk.reads(".page-title", WAITING)


def submit_a_job(walk: Walk) -> str:
    walk.begin(NAME)
    walk.keys("n")
    walk.page.locator("#submit-preview .scatterlayer .trace").first.wait_for(state="attached")
    walk.write("walked")
    walk.keys("Enter")
    return walk.reads(".page-title", "walked")


def cancel_a_job(walk: Walk) -> str:
    walk.begin(NAME)
    walk.to("Jobs")
    walk.click(walk.page.locator(".ag-row a", has_text="walked"))
    walk.page.locator(".page-title", has_text="walked").wait_for()
    walk.press("Cancel job")
    walk.click("#job-cancel-yes")
    return walk.reads("#job-head", "cancelled")


def submit_it_again_changed(walk: Walk) -> str:
    walk.begin(NAME)
    walk.to("Jobs")
    walk.click(walk.page.locator(".ag-row a", has_text="walked"))
    walk.click(walk.page.get_by_role("link", name="Submit another like it"))
    return walk.reads("#submit-like-note", "The form is filled as it was")


def change_priority(walk: Walk) -> str:
    walk.begin(NAME)
    walk.click(walk.page.get_by_role("link", name=WAITING))
    walk.press("Edit")
    walk.option("job-edit-priority", "High")
    walk.press("Save")
    return walk.reads("#job-spec", r"Priority\s*high")


def act_on_many(walk: Walk) -> str:
    walk.begin(NAME)
    walk.to("Jobs")
    walk.press("Act on these jobs")
    return walk.reads("#jobs-bulk-preview", r"It changes \d+ jobs?")


def share_what_is_seen(walk: Walk) -> str:
    walk.begin(NAME)
    walk.to("Submit")
    walk.page.locator("#submit-name:focus").wait_for()
    walk.write("shared")
    walk.page.wait_for_url("**name=shared*")
    return "its address has the filled form"


def what_was_changed(walk: Walk) -> str:
    walk.begin()
    walk.to("Admin")
    walk.click(walk.page.get_by_role("link", name="Audit"))
    return walk.reads("#admin-audit", "create cluster")


def be_told(walk: Walk) -> str:
    walk.begin()
    walk.to("Admin")
    walk.click(walk.page.get_by_role("link", name="Webhooks"))
    walk.press("Make a webhook")
    walk.page.get_by_role("dialog").wait_for()
    return "a form: name, URL, what it tells"


def dark(walk: Walk) -> str:
    walk.begin()
    walk.click("[aria-label='Dark'], .mantine-SegmentedControl-label >> nth=1")
    return "dark"


def if_i_submit_now(walk: Walk) -> str:
    walk.begin()
    walk.to("Submit")
    walk.page.locator("#submit-preview .scatterlayer .trace").first.wait_for(state="attached")
    walk.press("Forecast")
    return walk.reads("#submit-forecast", r"Starts [^.]+\. Ends [^.]+\.")


def another_policy(walk: Walk) -> str:
    walk.begin()
    walk.click(walk.page.get_by_role("link", name="Replay under another policy"))
    walk.page.locator("#simulate-run, #simulate-button").first.wait_for()
    return "yesterday's jobs are chosen; one more press runs it"


def drain_a_node(walk: Walk) -> str:
    walk.begin(NAME)
    walk.to("Cluster")
    walk.click("[aria-label^='drain ']")
    return walk.reads("[role=dialog]", r"\d+ jobs? [^.]+\.|No job[^.]*\.|nobody[^.]*\.")


def add_nodes(walk: Walk) -> str:
    walk.begin()
    walk.to("Cluster")
    walk.click("#what-if-open")
    walk.click("#what-if-add")
    walk.write("a100=2x8")
    walk.keys("Enter")
    return walk.reads("#what-if", r"Of \d+ jobs?, .+(later|earlier)\.")


TASKS: dict[str, Task] = {
    "why does my job wait": why_pending,
    "what would start it, and do it": what_would_start_it,
    "how many are before it, and when does it start": when_it_starts,
    "what is the largest job that fits now": largest_that_fits,
    "what did teams use yesterday, at what cost": use_of_yesterday,
    "who got less than its share": share_of_tenants,
    "why did this job move, and when": why_it_moved,
    "find one job by its name": find_a_job,
    "submit": submit_a_job,
    "cancel": cancel_a_job,
    "submit it again, changed": submit_it_again_changed,
    "raise the priority of a job that waits": change_priority,
    "act on all jobs of a filter": act_on_many,
    "show somebody else what I see": share_what_is_seen,
    "who changed what": what_was_changed,
    "be told when a job fails": be_told,
    "dark": dark,
    "what if I submit this now": if_i_submit_now,
    "what if yesterday had another policy": another_policy,
    "what if this node is drained": drain_a_node,
    "what if nodes are added": add_nodes,
}


def make_ready(client: Client) -> None:
    """Make the cluster whose second job waits, unless there is one."""
    if NAME in {cluster["name"] for cluster in client.clusters()}:
        return
    nodes = [
        {"name": kind, "gpu_type": kind, "gpu_count": count}
        for kind, count in (("a100", 8), ("t4", 4))
    ]
    made = client.create_cluster({"name": NAME, "round_seconds": 30, "speed": 30, "nodes": nodes})
    rigid = {"model": "cifar10", "adaptivity": "rigid", "gpu_count": 8, "batch_size": 512}
    where = {"work_scale": 500.0, "cluster_id": made["id"]}
    first = client.submit_job({"name": HOLDING, "preemptible": False, **rigid, **where})
    end = time.monotonic() + PATIENCE_SECONDS
    while client.job(first["id"])["allocation"] is None:
        if time.monotonic() > end:
            raise SystemExit(f"No round of {NAME} in {PATIENCE_SECONDS:g} s: does a worker run?")
        time.sleep(0.5)
    client.submit_job({"name": WAITING, **rigid, **where})
    time.sleep(5.0)  # some rounds of 1 s, which say why the other waits


def walked(walk: Walk, name: str, task: Task) -> dict[str, Cell]:
    begun = time.monotonic()
    told = task(walk)
    seconds = time.monotonic() - begun
    return {"task": name, "presses": walk.presses, "seconds": round(seconds, 1), "found": told}


def main(url: str) -> None:
    with Client(url) as client:
        make_ready(client)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        page.add_init_script(SEEN)
        rows = [walked(Walk(page, url), name, task) for name, task in TASKS.items()]
        browser.close()
    columns = {"task": "task", "presses": "presses", "seconds": "s", "found": "found"}
    show(Figures("tasks", "Tasks of users", columns, rows), Console(width=140))


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
