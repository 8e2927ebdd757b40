"""Tests that no page or route shows another tenant's jobs.

A viewer of another tenant asks every GET route and every callback of the pages. A viewer of the
tenant itself asks the same and does find its texts, so the walk reaches real data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from fastapi.testclient import TestClient
from two_tenants import API, BLUE_MODEL, HERE, RED_MODEL, SECRET, World, make_world
from walking import Page, Seen, callbacks, get_routes, path_names, query_names, walk_routes

from frontend.figures.usage import usage_figure
from frontend.pages.overview import charts

# Where the catalog of models is shown to everybody, no matter who trains what.
CATALOG = (
    "/models",
    "/openapi.json",
    "/docs",
    "/fidelities",
    "submit-",
    "jobs-model",
    "simulate-",
    "sweeps-",
    "autoscaling-",
    "tuning-",
    "_pages_content",
    "/_dash",
)
STREAM = {"Last-Event-ID": "r0.j0.o0"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_world(tmp_path_factory.mktemp("maat"))
    yield made
    made.database.dispose()


@pytest.fixture(scope="module")
def started(world: World) -> Iterator[World]:
    """With the service's life begun, as the event stream needs it."""
    with TestClient(world.app, base_url=HERE, client=("127.0.0.1", 50000)) as local:
        assert local.get("/_dash-dependencies").status_code == 200
        yield world


def fill_of(world: World) -> Mapping[str, Sequence[str]]:
    """Values for every parameter of a path or a query, those of red among them."""
    both = {noun: [*world.red[noun][:2], *world.blue[noun][:2]] for noun in world.red}
    job = [*both["jobs"], world.red["jobs"][-1], "other-1"]
    names = [RED_MODEL, f"{SECRET} tenant", "blue tenant"]
    return {
        "job_id": job,
        "cluster_id": ["demo"],
        "node_id": ["t4-0"],
        "reservation_id": world.red["reservations"] + world.blue["reservations"],
        "number": ["latest", "0", "1", "5"],
        "round": ["1", "5"],
        "name": [BLUE_MODEL],
        "measurement_id": both["measurements"],
        "simulation_id": both["simulations"],
        "run_id": [
            world.red["runs"][0],
            world.red["runs"][2],
            world.blue["runs"][0],
            world.blue["runs"][2],
        ],
        "sweep_id": both["sweeps"],
        "reproduction_id": both["reproductions"],
        "key": ["fig-3"],
        "experiment_id": both["experiments"],
        "forecast_id": both["forecasts"],
        "operation_id": both["operations"],
        "report_id": both["reports"],
        "schedule_id": both["schedules"],
        "webhook_id": both["webhooks"],
        "delivery_id": both["messages"],
        "form": ["csv", "json", "pdf", "html", "md"],
        "paper": ["letter"],
        "slug": ["not-found"],
        "rest": ["v1/nothing"],
        "path": ["jobs", f"jobs/{job[0]}", "rounds/1"],
        "package_name": ["dash"],
        "fingerprinted_path": ["nothing.js"],
        "cluster": ["demo", world.cluster_id],
        "state": ["running", "pending", "succeeded", "queued"],
        "tenant": names[1:],
        "owner": [f"{SECRET} submitter", "blue submitter"],
        "model": [RED_MODEL, BLUE_MODEL],
        "gpu_type": ["t4"],
        "actor": [f"{SECRET} submitter"],
        "action": ["submit job"],
        "target": world.red["jobs"][:1],
        "target_kind": ["job"],
        "array": ["arr_1"],
        "q": [SECRET, "job", world.red["jobs"][0]],
        "submitted_after": ["2020-01-01T00:00:00Z"],
        "submitted_before": ["2100-01-01T00:00:00Z"],
        "sort": ["name", "-gpu_hours"],
        "limit": ["1"],
        "offset": ["0"],
        "rank": ["0"],
        "cursor": ["nonsense"],
        "count": ["exact"],
        "flagged": ["false"],
        "skip": ["1"],
        "after": ["2020-01-01T00:00:00Z"],
        "before": ["2100-01-01T00:00:00Z"],
        "from": ["2020-01-01T00:00:00Z"],
        "to": ["2100-01-01T00:00:00Z"],
        "points": ["5"],
        "most": ["1"],
        "period": ["this-week"],
        "by": ["tenant", "user", "gpu_type", "model", "label", "day"],
        "per_day": ["true"],
        "label": [f"team={SECRET}"],
        "price_id": [world.price_id],
        "over": ["true"],
        "kind": ["interference", "submission"],
        **dict.fromkeys(("profiles", "trace", "variability", "interference"), both["measurements"]),
        "baseline": ["1"],
        "fairness_rule": ["mean-of-ratios", "share-of-type"],
        "runs": [world.red["runs"][0], world.blue["runs"][2]],
        "jobs": [world.red["jobs"][0], world.blue["jobs"][0], f"{SECRET} first", "other-1"],
        "topics": ["jobs", "rounds,operations"],
        "brief": ["true", "false"],
        "max_gpus": ["4"],
        "gpu_types": ["t4"],
        "progress": ["0.5"],
        "batch_size": ["512"],
        "workload_kind": ["training"],
        "user": [f"{SECRET} viewer", "blue viewer", "me"],
        "token_id": ["tok_nothing"],
        "preview_id": ["prv_nothing"],
        "role": ["viewer"],
        "active": ["true"],
        "next": ["/jobs"],
    }


def secrets_of(world: World) -> list[str]:
    work = ("simulations", "runs", "sweeps", "reproductions", "experiments", "operations")
    hidden = (
        "jobs",
        "forecasts",
        "measurements",
        "reports",
        "schedules",
        "webhooks",
        "messages",
        *work,
    )
    return [SECRET, *(one for noun in hidden for one in world.red[noun])]


def found_in(seen: Seen, secrets: Iterable[str]) -> list[str]:
    """Return the secrets that an answer holds although its request did not.

    The name of a model is no secret where an answer shows the catalog.
    """
    shows_catalog = any(part in seen.where for part in CATALOG)
    wanted = [*secrets, *([] if shows_catalog else [RED_MODEL])]
    return [secret for secret in wanted if secret in seen.answer and secret not in seen.asked]


def pages_of(world: World) -> list[str]:
    both = {noun: [*world.red[noun][:1], *world.blue[noun][:2]] for noun in world.red}
    plain = [
        "/",
        "/?range=all",
        "/cluster",
        "/jobs",
        "/submit",
        "/rounds",
        "/simulate",
        "/sweeps",
        "/experiments",
        "/experiments?kind=tuning",
        "/measurements",
        "/papers",
        "/papers/sia/table-2",
        "/reports",
        "/reports?from=2020-01-01&to=2020-02-01",
        "/fairness",
        "/calibration",
        "/fairness?from=2020-01-01&to=2020-02-01",
        *(f"/usage?by={by}" for by in ("tenant", "user", "gpu_type", "model", "label", "day")),
        "/account",
        "/help",
        "/help?q=rho",
        "/admin",
        "/admin?tab=clusters",
        "/admin?tab=quotas",
        "/admin?tab=webhooks",
        "/admin?tab=health",
        "/admin?tab=audit",
        "/sign-in",
        "/nothing",
    ]
    return [
        *plain,
        *(f"/jobs/{job_id}" for job_id in [*both["jobs"], "other-1"]),
        *(f"/rounds/{number}" for number in ("latest", "5")),
        *(f"/simulations/{one}" for one in both["simulations"]),
        *(f"/sweeps/{one}" for one in both["sweeps"]),
        *(f"/experiments/{one}" for one in both["experiments"]),
        *(f"/papers/bsbf/fig-3?reproduction={one}" for one in both["reproductions"]),
    ]


def walk_pages(world: World, user: str, *, press: bool) -> Iterator[Seen]:
    settings: dict[str, Any] = {
        "cluster-select.value": world.cluster_id,
        "scheme.data": "light",
        "live.data": 1,
        "jobs-grid.getRowsRequest": {
            "startRow": 0,
            "endRow": 50,
            "sortModel": [],
            "filterModel": {},
        },
    }
    said = {
        "at": 1,
        "action": "drain",
        "kind": "speed",
        "code": "raise_priority",
        "node": "t4-0",
        "told": "x",
        "reservation": world.red["reservations"][0],
        "id": world.red["measurements"][0],
    }
    said |= {
        "measurement": world.red["measurements"][0],
        "paper": "sia",
        "item": "table-2",
        "size": "quick",
        "cost": "little",
        "operation": world.red["operations"][0],
        "report": world.red["reports"][0],
        "schedule": world.red["schedules"][0],
        "webhook": world.red["webhooks"][0],
        "version": "1",
        "gpus": "4",
        "cluster": world.cluster_id,
        "round_seconds": "60.0",
        "speed": "1.0",
        "keep_rounds": "100",
        "jobs_per_gpu": "1",
        "interference": "",
        "least_stay_seconds": "1800.0",
        "most_moves_per_hour": "",
        "paused": "",
        "name": "x",
        "user": f"{SECRET} viewer",
        "role": "viewer",
        "state": "active",
        "tenant": f"{SECRET} tenant",
        "session": "ses_nothing",
        "token": "tok_nothing",
        "gpu_type": "t4",
        "guaranteed": "1",
        "ceiling": "",
    }
    client = world.client(user)
    answers: dict[str, Any] = {}
    for address in pages_of(world):
        yield from Page(client, address, settings, said if press else None, answers).run()


def test_the_walk_knows_how_to_fill_every_parameter(started: World) -> None:
    fill = fill_of(started)
    names = {
        name
        for path, route in get_routes(started.app)
        for name in (*path_names(path), *query_names(route))
    }
    assert {name.split(":")[0] for name in names} <= fill.keys(), (
        "say in fill_of what a new parameter may be"
    )


def test_no_route_tells_of_another_tenants_jobs(started: World) -> None:
    seen = list(walk_routes(started.client("blue-viewer"), fill_of(started), STREAM))
    assert [
        (one.where, one.asked, told) for one in seen if (told := found_in(one, secrets_of(started)))
    ] == []
    assert {one.where for one in seen if one.status == 200} >= REACHED


def test_no_callback_of_a_page_tells_of_another_tenants_jobs(started: World) -> None:
    seen = list(walk_pages(started, "blue-viewer", press=True))
    assert [(one.where, told) for one in seen if (told := found_in(one, secrets_of(started)))] == []
    assert callbacks().keys() - {one.where for one in seen} == set(), (
        "no page of pages_of has the inputs of these"
    )
    assert {one.where: one.answer for one in seen if one.status not in (200, 204)} == {}


def test_the_same_walk_finds_them_where_they_belong(started: World) -> None:
    routes = {
        one.where
        for one in walk_routes(started.client("red-viewer"), fill_of(started), STREAM)
        if found_in(one, [SECRET])
    }
    assert routes >= TOLD_BY_ROUTES
    called = {
        one.where
        for one in walk_pages(started, "red-viewer", press=False)
        if found_in(one, secrets_of(started))
    }
    assert {
        output for output in TOLD_BY_PAGES if not any(output in where for where in called)
    } == set()


def test_two_tenants_see_charts_drawn_once_and_maps_of_their_own(
    started: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def counted(*given: Any, scheme: str) -> Any:
        drawn.append(scheme)
        return usage_figure(*given, scheme=scheme)

    monkeypatch.setattr(charts, "usage_figure", counted)
    settings = {"cluster-select.value": started.cluster_id, "scheme.data": "dark", "live.data": 1}
    red, blue = (
        Page(started.client(f"{tenant}-viewer"), "/?range=all", settings, None)
        for tenant in ("red", "blue")
    )
    for page in (red, blue):
        assert all(seen.status in (200, 204) for seen in page.run())

    assert drawn == ["dark"]
    for chart in ("overview-usage.figure", "overview-pending.figure"):
        assert red.shown[chart]["data"]
        assert red.shown[chart] == blue.shown[chart]
    maps = [json.dumps(page.shown["overview-drawing.data"]["nodes"]) for page in (red, blue)]
    assert [SECRET in one for one in maps] == [True, False]


REACHED = {
    f"{API}{path}"
    for path in (
        "/events",
        "/jobs",
        "/jobs/{job_id}",
        "/jobs/{job_id}/allocations",
        "/jobs/{job_id}/events",
        "/jobs/{job_id}/explanation",
        "/clusters/{cluster_id}/state",
        "/clusters/{cluster_id}/changes",
        "/clusters/{cluster_id}/rounds",
        "/clusters/{cluster_id}/rounds/{number}",
        "/clusters/{cluster_id}/timeline",
        "/clusters/{cluster_id}/reservations",
        "/clusters/{cluster_id}/reservations/{reservation_id}",
        "/clusters/{cluster_id}/quotas",
        "/clusters/{cluster_id}/quotas/{tenant}/{gpu_type:path}",
        "/measurements",
        "/measurements/{measurement_id}",
        "/measurements/{measurement_id}/figures",
        "/measurements/{measurement_id}/files",
        "/simulations",
        "/simulations/{simulation_id}",
        "/simulations/{simulation_id}/comparison",
        "/simulations/{simulation_id}/figures",
        "/simulations/{simulation_id}/traces/{number}",
        "/simulations/{simulation_id}/runs/{run_id}/result",
        "/sweeps",
        "/sweeps/{sweep_id}",
        "/reproductions",
        "/reproductions/{reproduction_id}",
        "/reproductions/{reproduction_id}/items/{key}",
        "/experiments",
        "/experiments/{experiment_id}",
        "/operations",
        "/operations/{operation_id}",
        "/clusters/{cluster_id}/report",
        "/clusters/{cluster_id}/report/{form}",
        "/reports",
        "/reports/{report_id}",
        "/reports/{report_id}/{form}",
        "/report-schedules",
        "/report-schedules/{schedule_id}",
        "/report-schedules/{schedule_id}/deliveries",
        "/fairness",
        "/fairness/worst",
        "/fairness/shares",
        "/jobs/{job_id}/fairness",
        "/jobs/{job_id}/forecast",
        "/forecasts",
        "/forecasts/{forecast_id}",
        "/calibration",
    )
}
TOLD_BY_ROUTES = {
    f"{API}{path}"
    for path in (
        "/me",
        "/jobs",
        "/jobs/{job_id}",
        "/clusters/{cluster_id}/state",
        "/clusters/{cluster_id}/rounds",
        "/clusters/{cluster_id}/rounds/{number}",
        "/clusters/{cluster_id}/reservations",
        "/clusters/{cluster_id}/reservations/{reservation_id}",
        "/clusters/{cluster_id}/quotas",
        "/measurements",
        "/measurements/{measurement_id}",
        "/simulations",
        "/simulations/{simulation_id}",
        "/simulations/{simulation_id}/runs/{run_id}/result",
        "/sweeps",
        "/sweeps/{sweep_id}",
        "/experiments",
        "/experiments/{experiment_id}",
        "/clusters/{cluster_id}/report",
        "/clusters/{cluster_id}/report/{form}",
        "/reports",
        "/reports/{report_id}",
        "/reports/{report_id}/{form}",
        "/report-schedules",
        "/report-schedules/{schedule_id}",
        "/fairness",
        "/fairness/worst",
        "/fairness/shares",
        "/jobs/{job_id}/fairness",
        "/forecasts",
        "/forecasts/{forecast_id}",
    )
}
TOLD_BY_PAGES = {
    "overview-drawing.data",
    "cluster-drawing.data",
    "cluster-reserved.children",
    "admin-quotas.children",
    "jobs-grid.getRowsResponse",
    "job-head.children",
    "round-matrix.figure",
    "simulate-list.children",
    "simulation-head.children",
    "compare-jobs.data",
    "sweeps-list.children",
    "sweep-head.children",
    "experiments-list.children",
    "experiment-head.children",
    "measurements-list.children",
    "reports-document.children",
    "reports-kept.children",
    "reports-schedules.children",
    "fairness-worst.children",
}
