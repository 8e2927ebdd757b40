"""Small measurements, as people upload them."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

MEASUREMENTS = "/api/v1/measurements"
GPUS = "uuid,perf\n" + "".join(f"gpu-{n},{1 + n % 5 / 10}\n" for n in range(40))
PAIRS = "victim,partner,gpu_count,slowdown\n"
MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
TABLE = PAIRS + "".join(f"{one},{other},1,1.5\n" for one in MODELS for other in MODELS)
BY_BATCH_SIZE = f"{PAIRS}cifar10 (batch size 128),cifar10 (batch size 128),1,1.5\n"
ONE_GPU = "('ResNet-18 (batch size 64)', 1)"
_V100 = f'{{"{ONE_GPU}": {{"null": 10.0, "{ONE_GPU}": [5.0, 5.0]}}}}'
_P100 = f'{{"{ONE_GPU}": {{"null": 8.0, "{ONE_GPU}": [2.0, 2.0]}}}}'
GAVEL = f'{{"v100": {_V100}, "p100": {_P100}}}'


def unequal(*, name: str = "unequal", gpu_type: str = "t4", text: str = GPUS) -> dict[str, Any]:
    files = [
        {"name": f"{application}-{gpu_type}.csv", "text": text}
        for application in ("bert", "pagerank", "resnet")
    ]
    return {"kind": "variability", "name": name, "files": files}


def pairs(*, name: str = "pairs", text: str = TABLE) -> dict[str, Any]:
    return {"kind": "interference", "name": name, "files": [{"name": "pairs.csv", "text": text}]}


LOCALITY = (
    "model,gpu_type,gpu_count,per_gpu_batch_size,node_count,within_seconds,across_seconds,steps\n"
    "bert,t4,4,12,2,0.1,0.2,30\nbert,t4,2,12,2,0.1,0.3,40\nncf,a100,4,64,2,0.1,0.11,30\n"
)


def locality(*, name: str = "network", text: str = LOCALITY) -> dict[str, Any]:
    return {"kind": "locality", "name": name, "files": [{"name": "locality.csv", "text": text}]}


def uploaded(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(MEASUREMENTS, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made
