"""What a stranger writes into Redis costs itself alone: the messages beside it arrive."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import redis
from kombu import Connection, Consumer, Queue

from backend.queue import REPRODUCE, SIMULATIONS_QUEUE, broker_configuration, celery_queue
from backend.settings import Settings

PROPERTIES = {
    "delivery_tag": "1",
    "delivery_info": {"exchange": "", "routing_key": SIMULATIONS_QUEUE},
    "body_encoding": "base64",
}


def message(**changes: object) -> bytes:
    sound = {
        "body": "e30=",
        "headers": {},
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "properties": PROPERTIES,
    }
    return json.dumps(sound | changes).encode()


FOREIGN = [
    b"not json",
    b"\xff\xfe\x00",
    b"",
    b"[]",
    b"{}",
    b"null",
    message(properties={}),
    message(headers=7),
    message(properties=PROPERTIES | {"body_encoding": "none such"}),
    message(properties=PROPERTIES | {"delivery_tag": []}),
]


@pytest.mark.needs_redis
def test_a_message_that_cannot_be_read_is_dropped_and_the_next_arrives(
    redis_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, broker_url=redis_url)
    with redis.Redis.from_url(redis_url) as stranger:
        stranger.rpush(SIMULATIONS_QUEUE, *FOREIGN[: len(FOREIGN) // 2])
        celery_queue(settings).send(REPRODUCE, "run_1")
        stranger.lpush(SIMULATIONS_QUEUE, *FOREIGN[len(FOREIGN) // 2 :])
        celery_queue(settings).send(REPRODUCE, "run_2")
        received: list[object] = []
        given = broker_configuration(settings)["broker_transport"]
        with Connection(settings.celery_broker_url, transport=given) as connection:
            consumer = Consumer(
                connection,
                [Queue(SIMULATIONS_QUEUE)],
                on_message=lambda message: (received.append(message.payload[0]), message.ack()),
            )
            with consumer, caplog.at_level(logging.WARNING):
                while len(received) < 2:
                    connection.drain_events(timeout=20)
        assert received == [["run_1"], ["run_2"]]
        assert sum("cannot be read was dropped" in line for line in caplog.messages) == len(FOREIGN)
        assert stranger.llen(SIMULATIONS_QUEUE) == 0
