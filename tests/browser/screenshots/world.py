"""What the pictures show: a service with something of every kind, its faults, and an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browser.conftest import Server, serving, wait_until, worker_of
from browser.processes import forked
from maat.client import Client, calls

FINAL = ("succeeded", "failed", "cancelled")
PLAY_SECONDS = 400.0
# All that a page shows; not who the visitor is, nor whether the service is there.
FAILING = r"^/api/v1/(?!health|me$|sign-in|events)"
TRACE = (
    "name,time,application,num_replicas,batch_size,work_scale\n"
    "first,0,cifar10,2,256,0.1\nsecond,30,bert,2,24,0.02\nthird,60,cifar10,4,512,0.1\n"
)
PAIRS = "victim,partner,gpu_count,slowdown\n" + "".join(
    f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
)
RIGID = {
    "model": "cifar10",
    "adaptivity": "rigid",
    "gpu_count": 8,
    "batch_size": 512,
    "work_scale": 500.0,
}


@dataclass(frozen=True)
class World:
    """`ids`: what paths of pictures name, such as `waiting`, the id of a waiting job."""

    full: Server
    empty: Server
    ids: dict[str, str]

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Meanwhile the full service answers 503 to all that a page shows."""
        fault = self.full.folder / "failing"
        fault.write_text(FAILING)
        try:
            yield
        finally:
            fault.unlink()


@contextmanager
def made_world(folder: Path) -> Iterator[World]:
    """Start both services, and wait until the full one has rounds, results and ended jobs."""
    places = [folder / name for name in ("full", "empty")]
    for place in places:
        place.mkdir()
    failing = "browser.failing_service:app"
    with (
        serving(places[0], demo=True, application=failing) as full,
        serving(places[1], demo=False) as empty,
        forked(
            worker_of("rounds", "-B", "-s", str(places[0] / "beat")),
            full.environment,
            places[0] / "worker.log",
        ),
        forked(worker_of("simulations"), full.environment, places[0] / "simulations.log"),
    ):
        ids = _ask(full)
        _await(full, ids)
        with forked(worker_of("forecasts"), full.environment, places[0] / "forecasts.log"):
            yield World(full, empty, ids)


def _ask(server: Server) -> dict[str, str]:
    """Ask for something of every kind."""
    client, demo = server.client, server.cluster_id
    _manage(server)
    trace: dict[str, object] = {"kind": "csv", "text": TRACE}
    shape = "t4=2x4,a100=1x8"
    runs: Any = [{"policy": "sia"}, {"policy": "fifo"}]
    simulation = client.simulate(
        {"name": "Sia against FIFO", "traces": [trace], "cluster": shape, "runs": runs}
    )
    swept: Any = {"name": "Length of a round", "trace": trace, "cluster": shape, "policy": "fifo"}
    vary: Any = [{"name": "round_seconds", "values": [30, 60, 120]}]
    sweep = client.send(calls.start_sweep({**swept, "vary": vary}))
    scaling = calls.start_autoscaling({"name": "Cloud training", "model": "imagenet"})
    search = calls.start_tuning({"name": "Forty trials", "trials": 40})
    client.add_demo_jobs(24, seed=3)
    bodies: list[dict[str, Any]] = [
        {"name": "resnet50-imagenet-long-run", "model": "imagenet", "work_scale": 1000.0},
        {
            "name": "nightly",
            "model": "bert",
            "work_scale": 300.0,
            "deadline": "2036-12-01T08:00:00Z",
        },
        {"name": "paused-by-its-owner", "model": "imagenet", "labels": {"team": "vision"}},
        {"name": "soon-over", "model": "ncf", "work_scale": 0.05},
        *(
            {"name": f"{model}-{number}", "model": model, "work_scale": 300.0}
            for model in ("bert", "cifar10", "yolov3", "deepspeech2")
            for number in range(4)
        ),
    ]
    jobs = [client.submit_job({"cluster_id": demo, **body})["id"] for body in bodies]
    client.send(calls.pause_job(jobs[2]))
    waiting = waiting_job(client, "small")
    return {
        "running": jobs[0],
        "nightly": jobs[1],
        "ended": jobs[3],
        "waiting": waiting,
        "simulation": simulation["id"],
        "sweep": sweep["id"],
        "autoscaling": client.send(scaling)["id"],
        "tuning": client.send(search)["id"],
    }


def waiting_job(client: Client, cluster: str) -> str:
    """Make a cluster on which a job waits that remedies would start; returns the job's id."""
    nodes: list[dict[str, Any]] = [
        {"name": kind, "gpu_type": kind, "gpu_count": count}
        for kind, count in (("a100", 8), ("t4", 4))
    ]
    body = {"name": cluster, "round_seconds": 30, "speed": 30, "nodes": nodes}
    cluster_id = client.create_cluster(body)["id"]
    holds = {"name": "holds all", "preemptible": False, "cluster_id": cluster_id, **RIGID}
    first = client.submit_job(holds)["id"]
    wait_until(lambda: client.job(first)["allocation"] is not None, "a job to hold the a100s")
    return str(client.submit_job({"name": "needs eight", "cluster_id": cluster_id, **RIGID})["id"])


def _manage(server: Server) -> None:
    """What operators and tenants' managers have made."""
    client, demo = server.client, server.cluster_id
    client.create_tenant("vision")
    client.send(calls.reserve(demo, {"gpu_type": "t4", "gpu_count": 2, "tenant": "vision"}))
    client.set_quota(demo, "default", "rtx", {"guaranteed": 4, "ceiling": 16})
    client.set_quota(demo, "vision", "a100", {"ceiling": 12})
    for kind, price in (("t4", "0.35"), ("rtx", "0.80"), ("a100", "2.20")):
        rate = {"gpu_type": kind, "price_per_gpu_hour": price, "currency": "EUR"}
        client.send(calls.add_price(demo, rate))
    file = {"name": "pairs.csv", "text": PAIRS}
    measured: Any = {"kind": "interference", "name": "Pairs of March", "files": [file]}
    client.upload_measurement(measured)
    client.send(calls.make_report({"cluster": "demo"}))
    hook: Any = {"name": "pager", "url": "https://93.184.216.34/hook", "events": ["job.failed"]}
    client.send(calls.create_webhook(hook))
    schedule: Any = {
        "name": "Mondays",
        "cluster": "demo",
        "channel": "webhook",
        "url": "https://93.184.216.34/report",
        "secret": "signs-every-message",
    }
    client.send(calls.schedule_report(schedule))


def _await(server: Server, ids: dict[str, str]) -> None:
    """Wait until what was asked for is there; a service that is slow keeps only its own picture."""
    client = server.client
    logs = f"logs: {server.folder}"
    of = {"autoscaling": "experiment", "tuning": "experiment"}
    for path in ("simulation", "sweep", "autoscaling", "tuning"):
        call = getattr(calls, of.get(path, path))
        wait_until(
            lambda call=call, path=path: client.send(call(ids[path]))["state"] in FINAL,  # type: ignore[misc]
            f"the {path}; {logs}",
            PLAY_SECONDS,
        )
    wait_until(
        lambda: client.job(ids["ended"])["state"] in FINAL, f"a job to end; {logs}", PLAY_SECONDS
    )
    wait_until(lambda: bool(client.explanation(ids["waiting"])["remedies"]), f"remedies; {logs}")
    for cluster in client.clusters():  # a round a minute, so that pictures of a page are alike
        client.change_cluster(cluster["id"], {"speed": 1.0}, version=cluster["version"])
