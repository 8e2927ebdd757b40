"""Own policies in a real service: its pages, a rounds worker, the laboratory; and their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from own_policies.installing import environment_with, installed, uninstall
from playwright.sync_api import Browser, expect

from browser.conftest import Server, serving, wait_until, worker_of
from browser.laboratory import TRACE
from browser.processes import forked
from maat.client import ApiError

pytestmark = pytest.mark.needs_chromium

ALLOWED = "fair_queues.functions:few_each"
TRIPWIRE = "fair_queues.tripwire:LongestFirst"


@dataclass(frozen=True)
class World:
    """A service that finds the distribution in `target`, and is allowed one policy of a module."""

    target: Path
    folder: Path
    services: ExitStack = field(default_factory=ExitStack)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "PYTHONPATH": environment_with(self.target)["PYTHONPATH"],
            "MAAT_OWN_POLICIES": ALLOWED,
            "FAIR_QUEUES_TRIPWIRE": str(self.tripped),
        }

    @property
    def tripped(self) -> Path:
        return self.folder / "tripped"


@pytest.fixture(scope="module")
def world(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("own-policies")
    (folder / "data").mkdir()
    return World(installed(folder), folder)


@pytest.fixture(scope="module")
def fair(world: World) -> Iterator[Server]:
    """The service, with a worker for rounds, simulations and forecasts; the last test ends it."""
    data = world.folder / "data"
    with world.services:
        server = world.services.enter_context(serving(data, demo=False, more=world.settings))
        queues = worker_of("rounds,simulations,forecasts", "-B", "-s", str(data / "beat"))
        log = data / "worker.log"
        world.services.enter_context(forked(queues, server.environment, log))
        yield server


def cluster_of(server: Server, policy: str, **more: Any) -> str:
    body = {"name": policy, "policy": policy, "shape": "t4=2x4", "speed": 60.0, **more}
    return server.client.create_cluster(body)["id"]


def gpus_of(server: Server, job_id: str) -> bool:
    return server.client.job(job_id)["allocation"] is not None


def ended(server: Server, operation: str) -> str:
    """Return how an operation ended."""

    def state() -> str:
        return server.client.operation(operation)["state"]

    wait_until(lambda: state() not in ("queued", "running"), "the operation to end")
    return state()


def test_the_chooser_has_an_own_policy_with_its_knobs_and_its_words(fair: Any, inside: Any) -> None:
    page = inside.follow(f"{fair.url}/simulate")
    page.click("#simulate-policies")
    page.get_by_role("option", name="Longest first", exact=True).click()
    page.get_by_role("option", name="few_each", exact=True).click()
    page.keyboard.press("Escape")
    page.get_by_text("Parameters of policies and placers").click()
    group = page.locator(".parameter-group", has_text="Longest first (policy)")
    expect(group).to_contain_text("Whether later jobs may pass one that does not fit.")
    other = page.locator(".parameter-group", has_text="few_each (policy)")
    expect(other).to_contain_text("GPUs of each job.")
    assert inside.witness.errors == []


def test_a_cluster_a_simulation_a_sweep_and_a_question_run_under_it(fair: Any) -> None:
    cluster = cluster_of(fair, "longest-first", policy_parameters={"head_of_line": "block"})
    body = {"name": "long", "model": "cifar10", "work_scale": 50.0, "cluster_id": cluster}
    job = fair.client.submit_job(body)["id"]
    wait_until(lambda: gpus_of(fair, job), "the job to hold GPUs")
    assert fair.client.rounds(cluster)["items"][0]["status"] != "policy-failed"

    runs = [{"policy": name, "seed": 0} for name in ("longest-first", ALLOWED)]
    trace = {"kind": "csv", "text": TRACE}
    begun = fair.client.simulate(
        {"name": "own", "traces": [trace], "cluster": "t4=2x4", "runs": runs}
    )
    vary = [{"name": "policy", "values": ["longest-first", "fifo"]}]
    swept = fair.client.start_sweep(
        {"name": "own", "trace": trace, "cluster": "t4=2x4", "vary": vary}
    )
    question = {"cluster_id": cluster, "changes": {"policy": ALLOWED}}
    asked = fair.client.ask_forecast(question)
    for each in (begun, swept, asked):
        operation = each["operation_id"]
        assert ended(fair, operation) == "succeeded", fair.client.operation(operation)


def test_no_request_imports_what_it_names(fair: Any, world: World) -> None:
    trace = {"kind": "csv", "text": TRACE}
    run = {"policy": TRIPWIRE, "seed": 0}
    client = fair.client
    requests = (
        lambda: cluster_of(fair, TRIPWIRE),
        lambda: client.simulate(
            {"name": "own", "traces": [trace], "cluster": "t4=2x4", "runs": [run]}
        ),
    )
    vary = [{"name": "policy", "values": [TRIPWIRE]}]
    sweep = {"name": "own", "trace": trace, "cluster": "t4=2x4", "vary": vary}
    for request in (*requests, lambda: client.start_sweep(sweep)):
        with pytest.raises(ApiError) as refused:
            request()
        assert refused.value.status == 422
        assert "is no policy that Maat has" in str(refused.value.errors[0].full_sentence)
    assert not world.tripped.exists()


def test_a_cluster_whose_policy_was_uninstalled_says_so_and_keeps_what_runs(
    world: World, inside: Any
) -> None:
    """The last test: the service is started again, without the distribution."""
    world.services.close()
    uninstall(world.target)
    data = world.folder / "data"
    settings = {**world.settings, "MAAT_OWN_POLICIES": ""}
    with serving(data, demo=False, more=settings) as server:
        (cluster,) = [c for c in server.client.clusters() if c["policy"] == "longest-first"]
        (note,) = [n for n in cluster["notes"] if "longest-first" in n]
        assert "is missing" in note
        assert "install again what it came from, or choose another policy" in note
        before = server.client.rounds(cluster["id"])["items"][0]["number"]
        worker = worker_of("rounds", "-B", "-s", str(data / "beat-again"))
        with forked(worker, server.environment, data / "worker-again.log"):

            def latest() -> Any:
                return server.client.rounds(cluster["id"])["items"][0]

            wait_until(lambda: latest()["number"] > before, "a round without the policy")
            assert latest()["message"].startswith("The policy longest-first is missing.")
            assert latest()["running_jobs"] == 1
            page = inside.follow(f"{server.url}/rounds?cluster={cluster['id']}")
            expect(page.locator("#content")).to_contain_text("The policy made no decision")
            server.client.change_cluster(
                cluster["id"], {"policy": "fifo"}, version=cluster["version"]
            )
            wait_until(lambda: latest()["policy"] == "fifo", "a round of another policy")
            assert latest()["status"] != "policy-failed"
    assert inside.witness.errors == []
