"""A typed client of a running Maat service: `Client`, `AsyncClient`, `ApiError`.

What is sent and answered is declared in `maat.api`. Needs httpx and pydantic, not the engine.

    with Client("http://127.0.0.1:8000") as maat:
        job = maat.submit_job(JobBody(name="resnet", model="cifar10", max_gpus=8))
        print(maat.job(job["id"])["state"])
"""

from maat.api.commands import CommandBody
from maat.api.jobs import JobBody
from maat.client.as_it_is import change_as_it_is, change_as_it_is_async
from maat.client.clients import AsyncClient, Client
from maat.client.errors import ApiError, FieldProblem, Unreachable
from maat.client.event_stream import Told

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "CommandBody",
    "FieldProblem",
    "JobBody",
    "Told",
    "Unreachable",
    "change_as_it_is",
    "change_as_it_is_async",
]
