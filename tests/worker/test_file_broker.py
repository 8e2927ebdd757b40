"""The embedded broker: every message is seen whole, and by one consumer."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection

from backend.queue import broker_configuration
from backend.settings import Settings

MESSAGES = 200
PATIENCE_SECONDS = 120.0  # only a test that fails waits as long


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path)


def connect(settings: Settings) -> Connection:
    found = broker_configuration(settings)
    return Connection(
        settings.celery_broker_url,
        transport=found["broker_transport"],
        transport_options=found["broker_transport_options"],
    )


def test_each_message_reaches_one_of_several_consumers_whole(settings: Settings) -> None:
    sent = [{"number": number, "body": "x" * 20_000} for number in range(MESSAGES)]
    received: list[dict[str, object]] = []
    with ThreadPoolExecutor(5) as pool:
        takers = [pool.submit(take, settings, received, len(sent)) for _ in range(3)]
        putters = [pool.submit(put, settings, half) for half in (sent[::2], sent[1::2])]
        for done in takers + putters:
            done.result()
    assert sorted(received, key=lambda message: message["number"]) == sent
    assert list((settings.broker_path / "messages").iterdir()) == []


def test_queues_do_not_take_each_other_s_messages(settings: Settings) -> None:
    with connect(settings) as connection:
        rounds, simulations = (
            connection.SimpleQueue("rounds"),
            connection.SimpleQueue("simulations"),
        )
        simulations.put({"for": "simulations"})
        with pytest.raises(Empty):
            rounds.get(block=False)
        assert simulations.get(block=False).payload == {"for": "simulations"}


def test_two_brokers_in_one_process_each_deliver(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with connect(Settings(_env_file=None, data_dir=tmp_path / name)) as connection:
            queue = connection.SimpleQueue("rounds")
            queue.put({"for": name})
            assert queue.get(block=False).payload == {"for": name}


def put(settings: Settings, messages: list[dict[str, object]]) -> None:
    with connect(settings) as connection:
        queue = connection.SimpleQueue("rounds")
        for message in messages:
            queue.put(message)


def take(settings: Settings, received: list[dict[str, object]], most: int) -> None:
    """Take messages until the takers together have `most`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with connect(settings) as connection:
        queue = connection.SimpleQueue("rounds")
        while len(received) < most and time.monotonic() < deadline:
            try:
                message = queue.get(block=False)
            except Empty:
                time.sleep(0.005)
                continue
            message.ack()
            received.append(message.payload)
