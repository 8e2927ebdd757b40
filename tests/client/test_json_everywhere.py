"""Every command that prints data has --json, and what it then prints is JSON; all end with 0."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from deliveries import fail_delivery
from fastapi import FastAPI
from flagged_jobs import flag
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.client import Client

WITHOUT = {
    "up": "runs until it is ended",
    "demo train": "plays for minutes, and writes a recording as JSON",
    "logs": "prints what a process wrote, as it wrote it",
}
SMALL = ("--generate", "philly", "--jobs", "2", "--cluster", "t4=2x4", "--policy", "fifo")


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield each command by its words, with its options."""
    root = typer.main.get_command(commands)

    def below(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from below(command, (*words, name))
            else:
                context = command.make_context(name, [], resilient_parsing=True)
                yield " ".join((*words, name)), context.command

    return below(root, ())


def commands_with_json() -> set[str]:
    return {
        name
        for name, command in all_commands()
        if any("--json" in parameter.opts for parameter in command.params)
    }


class Walk:
    """Runs commands with --json, and keeps which ran."""

    def __init__(self, app: FastAPI, folder: Path) -> None:
        self.seen: set[str] = set()
        self.app, self.folder = app, folder

    def __call__(self, command: str, *arguments: str, typed: str | None = None) -> Any:
        words = [*command.split(), "--json", *arguments]
        done = CliRunner().invoke(commands, words, input=typed, catch_exceptions=False)
        assert done.exit_code == 0, (command, done.output)
        self.seen.add(command)
        return json.loads(done.stdout)


@pytest.fixture
def walk(app: FastAPI, maat: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Walk:
    app.state.settings = app.state.settings.model_copy(update={"allow_commands": True})
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    monkeypatch.setenv("MAAT_WEBHOOK_SECRET", "a-secret-of-more-than-16")
    return Walk(app, tmp_path)


def clusters(walk: Walk) -> None:
    walk("clusters")
    walk("create-cluster", "other", "--shape", "t4=1x4")
    walk("change-cluster", "other", "--policy", "fifo")
    walk("pause-cluster", "other")
    walk("resume-cluster", "other")
    walk("nodes")
    walk("slowdowns", "--cluster", "other")
    walk("gpu-scores", "--cluster", "other")
    walk("forget", "gpu-scores", "--cluster", "other")
    walk("evidence", "--cluster", "other")
    walk("forget", "history", "--model", "bert", "--cluster", "other")
    walk("add-nodes", "--gpu-type", "t4", "--gpus", "4", "--cluster", "other")
    walk("resize-node", "t4-1", "--gpus", "8", "--cluster", "other")
    walk("drain", "t4-1", "--yes", "--cluster", "other")
    walk("remove-node", "t4-1", "--cluster", "other")
    walk("undrain", "t4-0", "--cluster", "other")
    held = walk("reserve", "a100", "2", "--tenant", "default")
    walk("reservations")
    walk("unreserve", held["id"])
    walk("quota", "default", "--gpu-type", "a100", "--guaranteed", "2")
    walk("quotas")
    walk("unquota", "default", "--gpu-type", "a100")
    walk("weight", "default", "2")
    walk("top")
    nodes = walk.folder / "nodes.txt"
    nodes.write_text("NodeName=a Gres=gpu:tesla_t4:4 State=IDLE\n")
    walk("import cluster", str(nodes), "--dry-run")


def jobs(walk: Walk) -> None:
    job = walk("submit", "one", "--model", "bert")["id"]
    walk("forget-belief", job)
    flag(walk.app.state.database, job)
    walk("dismiss", job, "speed")
    walk("clone", job)
    for command in ("explain", "hold", "release", "pause", "resume", "forecast"):
        walk(command, job)
    walk("change", job, "--priority", "5")
    walk("cancel", job)
    walk("jobs")
    walk("demo jobs", "--count", "1")
    walk("calibration")
    walk("create-cluster", "here", "--shape", "cpu=1x4", "--executor", "local")
    own = walk("submit", "own", "--cluster", "here", "--", "python", "train.py")["id"]
    walk("attempts", own)
    walk("belief", own)
    walk("fairness")
    walk("usage")


def reports(walk: Walk) -> None:
    price = walk("price", "t4", "0.35", "EUR", "--from", "2026-03-02")
    walk("laboratory")
    walk("change-price", price["id"], "--amount", "0.36")
    walk("prices")
    walk("unprice", price["id"])
    walk("report", "--week", "--keep")
    (kept,) = walk("reports")
    walk("kept-report", kept["id"], "--pdf", str(walk.folder / "kept.pdf"))
    walk("delete-report", kept["id"], "--yes")
    schedule = walk("schedule-report", "Mondays", "--webhook", "https://93.184.216.34/hook")
    walk("change-report-schedule", schedule["id"], "--hour", "7")
    walk("pause-report-schedule", schedule["id"])
    walk("resume-report-schedule", schedule["id"])
    sent = walk("send-report", schedule["id"])
    fail_delivery(walk.app, sent["id"])
    walk("retry-report", schedule["id"], sent["id"])
    walk("report-schedules")
    walk("report-schedules", schedule["id"])
    walk("unschedule-report", schedule["id"])
    table = walk.folder / "interference.csv"
    table.write_text("victim,partner,gpu_count,slowdown\nbert,ncf,1,1.5\n")
    made = walk("upload", str(table), "--kind", "interference")
    walk("measurements")
    walk("delete-measurement", made["id"])


def accounts(walk: Walk) -> None:
    walk("shared-models add", "meta/llama")
    walk("shared-models list")
    walk("shared-models remove", "meta/llama")
    walk("tenants create", "vision")
    walk("tenants rename", "vision", "sight")
    walk("tenants close", "sight")
    walk("tenants open", "sight")
    walk("tenants list")
    walk("tenants remove", "sight")
    secret = "a sentence of some length\n"
    walk("users create", "ann", "--password-stdin", typed=secret)
    walk("users change", "ann", "--role", "viewer")
    walk("users set-password", "ann", "--password-stdin", typed=f"another {secret}")
    walk("users sign-out", "ann")
    walk("users list")
    walk("users remove", "ann")
    walk("users set-password", "local", "--password-stdin", typed=secret)
    walk("password", "--password-stdin", typed=f"{secret}another {secret}")
    walk("sessions list")
    walk("sessions end", "--all")
    token = walk("tokens create", "nightly")
    walk("tokens list")
    walk("tokens revoke", token["id"])
    walk("audit")
    made = walk("webhooks create", "pager", "--to", "https://93.184.216.34/hook", "--event", "all")
    hook = made["id"]
    walk("webhooks list")
    walk("webhooks change", hook, "--name", "bell")
    walk("webhooks pause", hook)
    walk("webhooks resume", hook)
    walk("webhooks rotate-secret", hook)
    message = walk("webhooks test", hook)
    walk("webhooks deliveries", hook)
    walk("webhooks redeliver", hook, message["id"])
    walk("webhooks remove", hook)


def elsewhere(walk: Walk) -> None:
    """What runs without the service's answers: simulations, and the database's own programs."""
    walk("version")
    walk("simulate", *SMALL)
    rows = walk.folder / "jobs.csv"
    rows.write_text("submit,gpus,duration\n0,2,60\n")
    walk("import trace", str(rows), "--format", "csv")
    walk("compare", *SMALL[:-1], "fifo,las")
    walk("sweep", *SMALL, "--vary", "round_seconds=60,120")
    walk("reproduce", "--list")
    walk("policies")
    walk("autoscale", "--model", "cifar10", "--cluster", "t4=2x4")
    walk("tune", "--trials", "1", "--work-scale", "0.1", "--cluster", "t4=1x4")
    walk("db check", "--data-dir", str(walk.folder))
    file = str(walk.folder / "maat.backup")
    walk("db backup", file, "--data-dir", str(walk.folder))
    walk("token create", "--data-dir", str(walk.folder))
    walk("db restore", file, "--force", "--data-dir", str(walk.folder))


PARTS: tuple[Callable[[Walk], None], ...] = (clusters, jobs, reports, accounts, elsewhere)
# These need a worker or run commands: test_live_commands, test_fairness_commands,
# test_replay_command, test_measure_pairs, test_measure_locality.
BY_THEMSELVES = {"ready", "rho", "replay", "measure locality", "measure pairs"}


def test_every_command_that_prints_data_has_json() -> None:
    assert {name for name, _ in all_commands()} - commands_with_json() == set(WITHOUT)


def test_what_every_command_prints_with_json_is_json(walk: Walk) -> None:
    for part in PARTS:
        part(walk)
    assert commands_with_json() - walk.seen == BY_THEMSELVES
