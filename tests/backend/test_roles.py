"""What every role may do: a table to read, and a walk over every route with every role.

A route that is added without a line here, or whose answer differs from its line, fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.accounts.permissions import PERMISSIONS, Permission, Role
from backend.shutdown import Shutdown

MakeClient = Callable[..., TestClient]

EVERYBODY, WITH_ANY_ACCOUNT, ONLY_AN_ATTEMPT = "everybody", "any account", "an attempt's own token"
LETTERS = {
    "v": Role.VIEWER,
    "s": Role.SUBMITTER,
    "m": Role.TENANT_MANAGER,
    "a": Role.CLUSTER_ADMIN,
    "u": Role.AUDITOR,
}
MAY = {
    # v viewer, s submitter, m tenant manager, a cluster admin, u auditor
    "getHealth": EVERYBODY,
    "getMetrics": "---au",
    "getSignInWays": EVERYBODY,
    "signIn": EVERYBODY,
    "beginOidc": EVERYBODY,
    "finishOidc": EVERYBODY,
    "getMe": WITH_ANY_ACCOUNT,
    "report": ONLY_AN_ATTEMPT,
    "signOut": "vsmau",
    "listMySessions": "vsmau",
    "endMySessions": "vsmau",
    "endMySession": "vsmau",
    "changeMyPassword": "vsmau",
    "listTokens": "vsmau",
    "createToken": "vsmau",
    "getToken": "vsmau",
    "revokeToken": "vsmau",
    "listAudit": "--mau",
    "exportAudit": "--mau",
    "listTenants": "--mau",
    "getTenant": "--mau",
    "createTenant": "---a-",
    "changeTenant": "---a-",
    "removeTenant": "---a-",
    "listUsers": "--mau",
    "getUser": "--mau",
    "createUser": "--ma-",
    "changeUser": "--ma-",
    "removeUser": "--ma-",
    "setPassword": "--ma-",
    "signOutUser": "--ma-",
    "listJobs": "vsmau",
    "getJob": "vsmau",
    "getJobCommand": "vsmau",
    "listJobAllocations": "vsmau",
    "listJobEvents": "vsmau",
    "explainJob": "vsmau",
    "listJobAttempts": "vsmau",
    "readJobLog": "vsmau",
    "downloadJobLog": "vsmau",
    "listJobSamples": "vsmau",
    "listJobGradients": "vsmau",
    "getJobBelief": "vsmau",
    "streamEvents": "vsmau",
    "submitJob": "-sma-",
    "submitJobs": "-sma-",
    "submitArray": "-sma-",
    "addDemoJobs": "-sma-",
    "cancelJob": "-sma-",
    "pauseJob": "-sma-",
    "holdJob": "-sma-",
    "resumeJob": "-sma-",
    "releaseJob": "-sma-",
    "changeJobs": "-sma-",
    "changeJob": "-sma-",
    "cloneJob": "-sma-",
    "listClusters": "vsmau",
    "getCluster": "vsmau",
    "listSlowdowns": "vsmau",
    "resetSlowdowns": "---a-",
    "listGpuScores": "vsmau",
    "dismissJobFlag": "--ma-",
    "resetGpuScores": "---a-",
    "resetJobBelief": "---a-",
    "listModelEvidence": "vsmau",
    "resetModelEvidence": "---a-",
    "listSharedModels": "vsmau",
    "shareModel": "---a-",
    "unshareModel": "---a-",
    "getClusterState": "vsmau",
    "getClusterChanges": "vsmau",
    "listNodes": "vsmau",
    "getNode": "vsmau",
    "listReservations": "vsmau",
    "getReservation": "vsmau",
    "listQuotas": "vsmau",
    "getQuota": "vsmau",
    "setQuota": "---a-",
    "removeQuota": "---a-",
    "createCluster": "---a-",
    "changeCluster": "---a-",
    "pauseCluster": "---a-",
    "resumeCluster": "---a-",
    "addNodes": "---a-",
    "changeNode": "---a-",
    "drainNode": "---a-",
    "restoreNode": "---a-",
    "deleteNode": "---a-",
    "previewRound": "---a-",
    "getRoundPreview": "---a-",
    "reserveGpus": "---a-",
    "deleteReservation": "---a-",
    "listRounds": "vsmau",
    "getRound": "vsmau",
    "getTimeline": "vsmau",
    "listPolicies": "vsmau",
    "listPlacers": "vsmau",
    "listFidelities": "vsmau",
    "listModels": "vsmau",
    "getModel": "vsmau",
    "previewGoodput": "vsmau",
    "getUsage": "vsmau",
    "listPrices": "vsmau",
    "getPrice": "vsmau",
    "addPrice": "---a-",
    "changePrice": "---a-",
    "deletePrice": "---a-",
    "getFairness": "vsmau",
    "listWorstFairness": "vsmau",
    "getShares": "vsmau",
    "getJobFairness": "vsmau",
    "recomputeFairness": "---a-",
    "skipJobFairness": "---a-",
    "getReportOfPeriod": "vsmau",
    "getReportOfPeriodAs": "vsmau",
    "getReportOfPeriodInAllForms": "vsmau",
    "listReports": "vsmau",
    "getReport": "vsmau",
    "getReportAs": "vsmau",
    "makeReport": "--ma-",
    "deleteReport": "--ma-",
    "listWebhooks": "--mau",
    "getWebhook": "--mau",
    "createWebhook": "--ma-",
    "changeWebhook": "--ma-",
    "deleteWebhook": "--ma-",
    "rotateWebhookSecret": "--ma-",
    "testWebhook": "--ma-",
    "listWebhookDeliveries": "--mau",
    "getWebhookDelivery": "--mau",
    "redeliverWebhookDelivery": "--ma-",
    "listReportSchedules": "vsmau",
    "getReportSchedule": "vsmau",
    "listReportDeliveries": "vsmau",
    "createReportSchedule": "--ma-",
    "changeReportSchedule": "--ma-",
    "deleteReportSchedule": "--ma-",
    "deliverReportNow": "--ma-",
    "retryReportDelivery": "--ma-",
    "listMeasurements": "vsmau",
    "getMeasurement": "vsmau",
    "getMeasurementFiles": "vsmau",
    "getMeasurementFigures": "vsmau",
    "uploadMeasurement": "-sma-",
    "deleteMeasurement": "-sma-",
    "getLaboratoryUse": "vsmau",
    "listSimulations": "vsmau",
    "getSimulation": "vsmau",
    "getComparison": "vsmau",
    "getFigures": "vsmau",
    "getSimulationTrace": "vsmau",
    "getRunResult": "vsmau",
    "listSweeps": "vsmau",
    "getSweep": "vsmau",
    "getPapers": "vsmau",
    "listReproductions": "vsmau",
    "getReproduction": "vsmau",
    "getReproducedItem": "vsmau",
    "getReproducedItemAsCsv": "vsmau",
    "getReproductionReport": "vsmau",
    "listExperiments": "vsmau",
    "getExperiment": "vsmau",
    "getJobForecast": "vsmau",
    "askForecast": "-sma-",
    "listForecasts": "vsmau",
    "getForecast": "vsmau",
    "getCalibration": "vsmau",
    "listOperations": "vsmau",
    "getOperation": "vsmau",
    "requestSimulation": "-sma-",
    "importTrace": "-sma-",
    "readColumns": "-sma-",
    "importCluster": "---a-",
    "requestSweep": "-sma-",
    "requestReproduction": "-sma-",
    "requestAutoscaling": "-sma-",
    "requestTuning": "-sma-",
    "cancelOperation": "-sma-",
}
PLACE = "nothing-there"


class SoonOver(Shutdown):
    """Ends an event stream at its first look."""

    async def wait(self, seconds: float) -> bool:
        return True


def operations(app: FastAPI) -> list[tuple[str, str, str]]:
    """Every operation of the document: its id, method and path."""
    return [
        (operation["operationId"], method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def ask(client: TestClient, method: str, path: str) -> int:
    url = re.sub(r"\{[^}]*\}", PLACE, path)
    body: Any = {} if method in ("POST", "PATCH", "PUT") else None
    return client.request(method, url, json=body, follow_redirects=False).status_code


def test_the_table_has_a_line_for_every_route_and_no_other(app: FastAPI) -> None:
    assert {name for name, _, _ in operations(app)} == set(MAY)


@pytest.mark.parametrize("letter", LETTERS)
def test_every_route_answers_every_role_as_the_table_says(
    app: FastAPI, client_as: MakeClient, letter: str
) -> None:
    visitor = client_as(LETTERS[letter])
    app.state.shutdown = SoonOver()
    wrong = []
    for name, method, path in operations(app):
        if name == "signIn":  # it refuses a far-away browser over plain http: test_sessions.py
            continue
        status, allowed = ask(visitor, method, path), MAY[name]
        if allowed == ONLY_AN_ATTEMPT:
            right = status in (401, 403)
        elif allowed in (EVERYBODY, WITH_ANY_ACCOUNT) or letter in allowed:
            right = status not in (401, 403) and status < 500
        else:
            right = status == 403
        if not right:
            wrong.append((name, status))
    assert wrong == []


def test_without_credentials_nothing_answers_but_what_is_for_everybody(app: FastAPI) -> None:
    stranger = TestClient(
        app, base_url="http://maat.example", client=("10.0.0.9", 1), raise_server_exceptions=False
    )
    app.state.shutdown = SoonOver()
    answered = {
        name for name, method, path in operations(app) if ask(stranger, method, path) != 401
    }
    assert answered == {name for name, allowed in MAY.items() if allowed == EVERYBODY}


@pytest.mark.parametrize("permission", list(Permission), ids=str)
def test_a_token_restricted_to_one_permission_opens_its_routes_and_no_others(
    app: FastAPI, client_as: MakeClient, permission: Permission
) -> None:
    narrow, whole = (
        client_as(Role.CLUSTER_ADMIN, scopes=[permission], name="narrow"),
        client_as(Role.CLUSTER_ADMIN, name="whole"),
    )
    assert narrow.get("/api/v1/me").json()["permissions"] in ([permission.value], [])
    app.state.shutdown = SoonOver()
    opened = {
        name
        for name, method, path in operations(app)
        if MAY[name] not in (EVERYBODY, WITH_ANY_ACCOUNT, ONLY_AN_ATTEMPT)
        and ask(narrow, method, path) != 403
    }
    for name in opened:
        (route,) = (one for one in _routes(app) if one.operation_id == name)
        assert permission in _permissions(route.dependant)
    assert whole.get("/api/v1/me").status_code == 200


def _routes(app: FastAPI) -> list[Any]:
    from backend.app import ROUTERS

    return [route for router in ROUTERS for route in router.routes]


def _permissions(dependant: Any) -> set[Any]:
    found = {dependant.call.permission} if hasattr(dependant.call, "permission") else set()
    return found.union(*(_permissions(inner) for inner in dependant.dependencies))


def test_the_documentation_says_of_every_role_what_the_code_says() -> None:
    text = (Path(__file__).parents[2] / "docs" / "accounts.md").read_text()
    rows = {
        cells[1].strip("` "): [cell.strip() == "yes" for cell in cells[2:7]]
        for line in text.splitlines()
        if len(cells := line.split("|")) == 8 and ":" in cells[1]
    }
    assert rows == {
        permission.value: [permission in PERMISSIONS[role] for role in LETTERS.values()]
        for permission in Permission
    }
