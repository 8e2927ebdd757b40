"""A typed client of a running Maat service: `Client`, `AsyncClient`, the resources they answer, and `ApiError`.

Needs only httpx. It knows the REST API, not the engine behind it.

    with Client("http://127.0.0.1:8000") as maat:
        job = maat.submit_job(name="resnet", model="cifar10", max_gpus=8)
        print(maat.job(job["id"])["state"])
"""

from maat.client.clients import AsyncClient, Client
from maat.client.errors import ApiError, FieldProblem, Unreachable

__all__ = ["ApiError", "AsyncClient", "Client", "FieldProblem", "Unreachable"]
