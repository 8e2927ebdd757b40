"""`maat top` and `maat jobs --watch` in a real terminal and a real pipe, beside a real service."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from backend.settings import Settings
from benchmarks.service.real_server import PATIENCE_SECONDS, serving
from maat.cli.live.cluster_picture import picture_of
from maat.cli.live.cluster_view import ClusterView, Holder, read_cluster
from maat.cli.tables import plain_text
from maat.client import Client, calls
from maat.client.event_stream import EventLines, Told
from worker.live.step import step_cluster

CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("live")
    settings = Settings(_env_file=None, data_dir=folder, database_url="", demo=True)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    url = f"sqlite:///{folder / 'maat.db'}"
    with (
        serving("backend.app:create_app", url, folder, event_poll_seconds=0.05) as started,
        Client(started.url) as maat,
    ):
        yield maat


# What a shell starts in the background ignores Ctrl+C, and so does all that this starts.
HEARS_CTRL_C = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('maat', run_name='__main__')"
)


class Terminal:
    """A command in a terminal of its own: what it has drawn so far, and its keyboard."""

    def __init__(self, *arguments: str, url: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", HEARS_CTRL_C, *arguments, "--url", url],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "COLUMNS": "150", "LINES": "40", "TERM": "xterm"},
        )
        os.close(theirs)

    def wait_for(self, text: str) -> str:
        """Return what was drawn since the last wait, once it holds the text."""
        end, drawn = time.monotonic() + PATIENCE_SECONDS, ""
        while text not in CODES.sub("", drawn):
            if not select.select([self._ours], [], [], max(end - time.monotonic(), 0))[0]:
                self.process.kill()
                pytest.fail(f"never drawn: {text}; but {drawn[-2000:]!r}")
            drawn += os.read(self._ours, 65536).decode(errors="replace")
        return CODES.sub("", drawn)

    def end(self, by: str | signal.Signals) -> int:
        """Press a key, or send what Ctrl+C sends; return the exit code."""
        if isinstance(by, str):
            os.write(self._ours, by.encode())
        else:
            self.process.send_signal(by)
        code = self.process.wait(PATIENCE_SECONDS)
        os.close(self._ours)
        return code


@pytest.mark.parametrize("end", ["q", signal.SIGINT])
def test_top_draws_a_job_that_comes_and_ends_when_asked(
    served: Client, end: str | signal.Signals
) -> None:
    terminal = Terminal("top", url=served.url)
    terminal.wait_for("Running")

    served.submit_job({"name": f"comes-{end}", "model": "bert"})

    drawn = terminal.wait_for(f"comes-{end}")
    assert "No round has considered it yet." in drawn
    assert terminal.end(end) == 0


def test_a_list_of_jobs_in_a_pipe_comes_again_after_a_change(served: Client) -> None:
    command = [sys.executable, "-m", "maat", "jobs", "--watch", "--json", "--url", served.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        before = json.loads(process.stdout.readline())["items"]
        made = served.submit_job({"name": "piped", "model": "bert"})
        for line in process.stdout:
            if made["id"] in [job["id"] for job in json.loads(line)["items"]]:
                break
        process.terminate()
    assert made["id"] not in [job["id"] for job in before]


def test_top_into_a_pipe_prints_once(served: Client) -> None:
    command = [sys.executable, "-m", "maat", "top", "--url", served.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("demo  sia + whole-node")
    assert "\x1b" not in done.stdout


def seen(app: FastAPI, maat: Client) -> ClusterView:
    """A cluster on which one job runs and one is held."""
    running = maat.submit_job({"name": "runs", "model": "cifar10", "max_gpus": 2})
    cluster_id = running["cluster_id"]
    with app.state.database.session_scope() as session:
        cluster = session.get_one(Cluster, cluster_id)
        cluster.anchor_seconds, cluster.anchor_wall, cluster.speed = 600.0, utc_now(), 1e-9
    step_cluster(app.state.database, cluster_id)
    waits = maat.submit_job({"name": "waits \u05d0\u05d1", "model": "bert"})
    maat.hold_job(waits["id"])
    return read_cluster(maat, cluster_id)


def test_a_cluster_is_read_with_who_runs_where_and_who_waits(app: FastAPI, maat: Client) -> None:
    view = seen(app, maat)

    (holder,) = view.holders
    assert (holder.name, sum(holder.nodes.values())) == ("runs", sum(holder.gpu_types.values()))
    assert holder.job is not None
    assert [job["name"] for job in view.waiting] == ["waits \u05d0\u05d1"]


def test_the_next_round_is_counted_down_in_wall_time(app: FastAPI, maat: Client) -> None:
    view = seen(app, maat)
    times = {"as_of": "2026-11-20T12:00:00.000Z", "now": "2026-11-20T12:01:00.000Z"}
    cluster: Any = {**view.cluster, "round_seconds": 120.0, "speed": 20.0}
    state: Any = {**view.state, **times}
    at = replace(view, cluster=cluster, state=state, read_at=100.0)

    assert [at.next_round_seconds(now) for now in (100.0, 102.0, 110.0)] == [3.0, 1.0, 0.0]
    assert replace(at, cluster=cluster | {"paused": True}).next_round_seconds(100.0) is None


def test_a_picture_says_what_is_left_out_and_steers_no_terminal(app: FastAPI, maat: Client) -> None:
    view = seen(app, maat)
    evil = Holder("\x1b]0;owned\x07a\u202eb\nc [red]", None, {"t4": 1}, {"n\x1b[2J": 1}, None)
    crowd = ClusterView(
        view.cluster, view.state, [*view.holders, *[evil] * 50], view.waiting * 50, 7, {}
    )

    shown = plain_text(picture_of(crowd, crowd.read_at, lines=30))

    assert len(shown.splitlines()) <= 30
    assert "a\\u202eb␊c [red]" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    in_all = sum(map(int, re.findall(r"and (\d+) more$", shown, re.MULTILINE)))
    rows = len(re.findall(r"^(?:waits|runs|a\\u202e)", shown, re.MULTILINE))
    assert in_all + rows == 51 + 50 + 7


def test_what_is_reserved_stands_beside_what_is_free(app: FastAPI, maat: Client) -> None:
    view = seen(app, maat)
    assert "reserved" not in plain_text(picture_of(view, view.read_at))

    kept = {"gpu_type": "t4", "gpu_count": 3, "tenant": "default"}
    maat.send(calls.reserve(view.cluster["id"], kept))
    later = {**kept, "gpu_type": "rtx", "start_at": "2036-11-20T12:00:00Z"}
    maat.send(calls.reserve(view.cluster["id"], later))
    view = read_cluster(maat, view.cluster["id"])

    assert view.as_json()["reserved_by_type"] == {"t4": 3}
    shown = plain_text(picture_of(view, view.read_at))
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert "reserved" in rows["GPU"]
    assert [rows[name][5] for name in ("t4", "rtx")] == ["3", "0"]


def test_events_are_read_from_lines_and_comments_are_left_out() -> None:
    lines = [": alive", "event: jobs", 'data: {"job_id":', 'data: "j"}', "id: r1.j2.o3", "", ""]
    assert list(EventLines().all_of(lines)) == [Told("jobs", {"job_id": "j"}, "r1.j2.o3")]
