"""The embedded broker: one consumer sees each message, and sees it whole.

Also pins what the broker relies on of kombu.
"""

from __future__ import annotations

import inspect
import resource
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection
from kombu.transport import virtual

from backend.queue import SIMULATIONS_QUEUE, broker_configuration, celery_queue
from backend.settings import Settings
from worker import file_broker

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
    assert list(messages_of(settings).iterdir()) == []


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


def test_a_task_reaches_its_queue_from_a_process_that_declared_no_queue(settings: Settings) -> None:
    celery_queue(settings).send("maat.reproduce", "an-id")
    with connect(settings) as connection:
        message = connection.SimpleQueue(SIMULATIONS_QUEUE).get(block=False)
        assert message.headers["task"] == "maat.reproduce"
        assert message.payload[0] == ["an-id"]


def test_a_damaged_message_is_dropped_and_the_next_is_delivered(settings: Settings) -> None:
    with connect(settings) as connection:
        queue = connection.SimpleQueue("rounds")
        for content in (b"", b"\0\0", b"\xff", b'{"body": '):
            name = f"{time.time_ns():020d}_{uuid.uuid4()}.rounds.msg"
            (messages_of(settings) / name).write_bytes(content)
        queue.put({"for": "rounds"})
        message = queue.get(block=False)
        assert message.payload == {"for": "rounds"}
        message.ack()
    assert list(messages_of(settings).iterdir()) == []


def test_what_a_killed_sender_left_half_written_is_not_a_message(settings: Settings) -> None:
    with connect(settings) as connection:
        queue = connection.SimpleQueue("rounds")
        (messages_of(settings) / "00000000000000000001_half.rounds.msg.part").write_text('{"bo')
        with pytest.raises(Empty):
            queue.get(block=False)


def test_a_message_that_does_not_fit_on_the_disk_leaves_nothing(settings: Settings) -> None:
    with connect(settings) as connection, connection.channel() as channel:
        with files_of_at_most(10), pytest.raises(OSError, match="File too large"):
            channel.basic_publish(envelope(1), exchange="", routing_key="rounds")
        assert list(messages_of(settings).iterdir()) == []


def test_messages_are_delivered_counted_and_purged_by_kombu_s_public_methods(
    settings: Settings,
) -> None:
    with connect(settings) as connection, connection.channel() as channel:
        for number in range(3):
            channel.basic_publish(envelope(number), exchange="", routing_key="rounds")
        assert channel.queue_declare("rounds").message_count == 3
        assert channel.basic_get("rounds", no_ack=True).headers == {"number": 0}
        assert channel.queue_purge("rounds") == 2
        assert channel.basic_get("rounds") is None


def test_a_message_without_an_acknowledgement_returns_when_its_consumer_closes(
    settings: Settings,
) -> None:
    with connect(settings) as connection:
        with connection.channel() as channel:
            channel.basic_publish(envelope(1), exchange="", routing_key="rounds")
            assert channel.basic_get("rounds") is not None
            assert channel.basic_get("rounds") is None
        with connection.channel() as channel:
            assert channel.basic_get("rounds").headers == {"number": 1}


def test_kombu_looks_for_messages_as_often_as_the_settings_say(settings: Settings) -> None:
    with connect(settings) as connection:
        assert connection.transport.polling_interval == 0.05


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("_get", ["self", "queue", "timeout"]),
        ("_put", ["self", "queue", "message"]),
        ("_purge", ["self", "queue"]),
        ("_size", ["self", "queue"]),
    ],
)
def test_kombu_leaves_this_method_to_the_transport(method: str, parameters: list[str]) -> None:
    left = getattr(virtual.AbstractChannel, method)
    assert list(inspect.signature(left).parameters) == parameters
    assert method not in vars(virtual.Channel), "kombu has now one of its own"
    assert method in vars(file_broker.Channel)


def test_the_channel_overrides_only_what_kombu_leaves_to_transports() -> None:
    overridden = {
        name
        for name, value in vars(file_broker.Channel).items()
        if inspect.isfunction(value) and hasattr(virtual.Channel, name)
    }
    assert overridden == {"_get", "_put", "_purge", "_size"}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a full disk: this process can write no longer file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def envelope(number: object) -> dict[str, object]:
    """A message as kombu hands it to a channel."""
    return {"body": "{}", "headers": {"number": number}, "properties": {"delivery_info": {}}}


def messages_of(settings: Settings) -> Path:
    return settings.broker_path / "messages"


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
