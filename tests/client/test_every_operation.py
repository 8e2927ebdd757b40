"""Every operation of the REST API is a call of the client, and nearly every one a command."""

from __future__ import annotations

from fastapi import FastAPI
from operations_of import Operations, calls_of_commands, calls_of_the_client

from maat.client import Client

WITHOUT_A_CALL = {
    "signIn": "sets the cookies of a browser; programs send a token",
    "signOut": "takes them away",
    "beginOidc": "sends a browser to the provider",
    "finishOidc": "receives a browser from the provider",
    "getMetrics": "is read by Prometheus, in its own text form",
    "report": "is what the processes of an attempt say, with a token of their own",
    "releaseJob": "is resumeJob by another name",
}
_LISTED = "the command that lists shows all of each"
_REPRODUCED = "maat reproduce runs without a service; a page shows what was kept"
_ALONE = (
    "maat simulate, compare, sweep, autoscale and tune run without a service; "
    "the pages show what was kept"
)
_PAGE = "a page draws it"
_HELP = "--help and the message of a wrong value name them"
_READ_HERE = "maat import reads the file itself, without a service"
WITHOUT_A_COMMAND = WITHOUT_A_CALL | {
    "getHealth": "maat ready says more",
    "getMe": "is for programs: what their token may",
    "getSignInWays": "is for browsers",
    "getMeasurement": _LISTED,
    "getMeasurementFigures": _PAGE,
    "getMeasurementFiles": "gives back what was uploaded from files",
    "getReservation": _LISTED,
    "getToken": _LISTED,
    "getClusterChanges": _PAGE,
    "getModel": _PAGE,
    "previewGoodput": _PAGE,
    "getRound": _PAGE,
    "listRounds": _PAGE,
    "getTimeline": _PAGE,
    "listJobEvents": _PAGE,
    "listJobGradients": _PAGE,
    "listJobSamples": "maat belief says what was learnt of them",
    "listForecasts": "maat forecast waits for its answer",
    "listOperations": "commands wait for the operations that they begin",
    "listFidelities": _HELP,
    "listPlacers": _HELP,
    "listPolicies": _HELP,
    "listSimulations": _ALONE,
    "getFigures": _ALONE,
    "getSimulationTrace": _ALONE,
    "requestSweep": _ALONE,
    "listSweeps": _ALONE,
    "getSweep": _ALONE,
    "getPapers": _REPRODUCED,
    "requestReproduction": _REPRODUCED,
    "listReproductions": _REPRODUCED,
    "getReproduction": _REPRODUCED,
    "getReproducedItem": _REPRODUCED,
    "getReproducedItemAsCsv": _REPRODUCED,
    "getReproductionReport": _REPRODUCED,
    "requestAutoscaling": _ALONE,
    "requestTuning": _ALONE,
    "listExperiments": _ALONE,
    "getExperiment": _ALONE,
    "importCluster": _READ_HERE,
    "importTrace": _READ_HERE,
    "readColumns": _READ_HERE,
    "submitJobs": "maat submit --array, or a loop of the shell",
}


def test_every_operation_is_a_call_of_the_client(app: FastAPI) -> None:
    assert Operations(app).without(calls_of_the_client().values()) == set(WITHOUT_A_CALL)


def test_every_other_operation_is_reached_by_a_command(app: FastAPI, maat: Client) -> None:
    assert Operations(app).without(calls_of_commands(maat)) == set(WITHOUT_A_COMMAND)
