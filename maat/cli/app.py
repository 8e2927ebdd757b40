"""All commands together.

The one place where an error becomes a message and an exit code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from maat import __version__
from maat.cli import token
from maat.cli.account_commands import ACCOUNT_NOUNS
from maat.cli.cluster_commands import CLUSTER_COMMANDS, MEASURE_NOUN
from maat.cli.import_commands import IMPORT_NOUNS
from maat.cli.lazy_commands import EXIT_CODES, Command, add_lazily
from maat.cli.numbers import whole_option
from maat.cli.report_commands import REPORT_COMMANDS
from maat.cli.service import AsJson, show
from maat.cli.terminal_text import without_controls
from maat.scheduling.errors import InputError, MaatError

COMMANDS = (
    Command(
        "simulate",
        "Simulate a workload under one or more policies and print how the jobs fared.",
        "maat.cli.simulate:simulate_command",
    ),
    Command(
        "compare",
        "Compare policies and placers over traces and seeds, with their uncertainty.",
        "maat.cli.compare:compare_command",
    ),
    Command(
        "sweep",
        "Vary one or two settings of a simulation and print the figures over seeds.",
        "maat.cli.sweep:sweep_command",
    ),
    Command(
        "reproduce",
        "Make tables and figures of the papers again, beside the published values.",
        "maat.cli.reproduce:reproduce_command",
    ),
    Command(
        "replay",
        "Play a cluster's last hours again under other policies, and compare them job by job.",
        "maat.cli.replay:replay",
    ),
    Command(
        "policies",
        "List policies, Maat's and those of installed distributions; of one, its parameters.",
        "maat.cli.policies:policies",
    ),
    Command(
        "autoscale",
        "Train a model, or a workload, on rented nodes under two autoscalers; compare cost, time.",
        "maat.cli.autoscale:autoscale_command",
    ),
    Command(
        "tune",
        "Search hyper-parameters of one model on elastic and on static GPUs.",
        "maat.cli.tune:tune_command",
    ),
    Command(
        "submit",
        "Submit a job to a running Maat: a model of the catalog, or a command after --.",
        "maat.cli.submit:submit",
        takes_words=True,
    ),
    Command(
        "logs",
        "Print what a command has written; with -f, what it writes until it ends.",
        "maat.cli.logs:logs",
    ),
    Command(
        "attempts",
        "List the attempts of a command: the lives of its processes.",
        "maat.cli.logs:attempts",
    ),
    Command(
        "belief",
        "Show what was learnt of a job: step times by GPU type, the parts of a restart, profiles.",
        "maat.cli.belief:belief",
    ),
    Command(
        "top",
        "Show who runs where, who waits and why, and the next round, as they change.",
        "maat.cli.top:top",
    ),
    Command("jobs", "List jobs, newest first.", "maat.cli.jobs:jobs"),
    Command(
        "explain",
        "Explain why a job waits or has what it has, and do what helps.",
        "maat.cli.jobs:explain",
    ),
    Command(
        "dismiss",
        "Dismiss a flag of a job: what it reports is right, though it is unlikely.",
        "maat.cli.jobs:dismiss",
    ),
    Command(
        "forecast",
        "Show when a job starts and ends, or what a change of the cluster would do to all jobs.",
        "maat.cli.forecast:forecast",
    ),
    Command(
        "calibration",
        "Show what forecasts were worth: how often what was promised came in time, and how near.",
        "maat.cli.forecast:calibration",
    ),
    Command(
        "cancel",
        "Cancel a job: it ends and cannot go on. A command is asked to save first.",
        "maat.cli.pausing:cancel",
    ),
    Command(
        "ready",
        "Say whether all that Maat needs is there; if not, what is missing, and the remedy.",
        "maat.cli.ready:ready",
    ),
    Command(
        "password",
        "Change your own password. You are signed out in all browsers; tokens stay.",
        "maat.cli.sessions:password",
    ),
    Command(
        "audit",
        "List what was changed, by whom, newest first; or write it to a file.",
        "maat.cli.audit:audit",
    ),
    Command(
        "pause",
        "Pause a job: it saves its work, gives its GPUs back, and waits until it is resumed.",
        "maat.cli.pausing:pause",
    ),
    Command(
        "resume",
        "Resume a paused job: the next round considers it again, as of its submission.",
        "maat.cli.pausing:resume",
    ),
    Command(
        "change",
        "Change a job that lives; of many jobs, their priority, weight or labels.",
        "maat.cli.changing:change",
    ),
    Command(
        "clone",
        "Submit a job like another one, with some fields changed.",
        "maat.cli.changing:clone",
    ),
    Command(
        "hold",
        "Keep a job that holds no GPUs from starting, until it is released.",
        "maat.cli.pausing:hold",
    ),
    Command(
        "release", "Release a held job: the same as `maat resume`.", "maat.cli.pausing:release"
    ),
    *CLUSTER_COMMANDS,
    Command(
        "quotas",
        "List quotas: what each tenant is guaranteed, may hold at most, and holds now.",
        "maat.cli.quotas:quotas",
    ),
    Command(
        "quota",
        "Guarantee a tenant GPUs of a type, and bound how many it may hold.",
        "maat.cli.quotas:quota",
    ),
    Command(
        "unquota",
        "Remove a quota: nothing of the type is then guaranteed or bounded.",
        "maat.cli.quotas:unquota",
    ),
    Command(
        "weight",
        "Weigh a tenant: its share of what several tenants want, in all clusters.",
        "maat.cli.quotas:weight",
    ),
    Command(
        "fairness",
        "Show finish-time fairness: rho by tenant, the worst jobs, and shares of the GPUs.",
        "maat.cli.fairness:fairness",
    ),
    Command("rho", "Show finish-time fairness of a job that has ended.", "maat.cli.fairness:rho"),
    *REPORT_COMMANDS,
    Command(
        "measurements",
        "List uploaded measurements, newest first.",
        "maat.cli.measurements:measurements",
    ),
    Command(
        "upload",
        "Upload measured GPUs, interference, profiles of models, or a trace for simulations.",
        "maat.cli.measurements:upload_measurement",
    ),
    Command(
        "delete-measurement",
        "Delete uploaded measurements. Simulations that use them keep them.",
        "maat.cli.measurements:delete_measurement",
    ),
)

DEMOS = (
    Command("jobs", "Add demo jobs to the first cluster.", "maat.cli.demo:jobs"),
    Command(
        "train",
        "Train three small models on eight emulated GPUs, lose a node, and write a report.",
        "maat.cli.demo:train",
    ),
)

app = typer.Typer(
    name="maat",
    help="Maat schedules deep-learning training jobs on GPU clusters of mixed types.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
demos = typer.Typer(
    help="Something to look at: demo jobs, and a demo that really trains.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    add_lazily(app, command)
for command in DEMOS:
    add_lazily(demos, command)


@demos.callback()
def demo_commands() -> None:
    """Something to look at: demo jobs, and a demo that really trains."""


app.add_typer(demos, name="demo")
app.add_typer(token.app, name="token")
for noun, (title, entries) in (ACCOUNT_NOUNS | IMPORT_NOUNS | MEASURE_NOUN).items():
    of_noun = typer.Typer(help=title, no_args_is_help=True, pretty_exceptions_enable=False)
    of_noun.callback(help=title)(lambda: None)
    for command in entries:
        add_lazily(of_noun, command)
    app.add_typer(of_noun, name=noun)


@app.command("up")
def up_command(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Only loopback addresses need no token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, whole_option("--port", least=1, most=65535, help="First port to try.")
    ] = 8000,
    data_dir: Annotated[
        Path,
        typer.Option(
            envvar="MAAT_DATA_DIR", help="Folder of the database, the queue and the logs."
        ),
    ] = Path("var"),
    demo_cluster: Annotated[
        bool,
        typer.Option(
            "--demo/--no-demo", help="Make a demo cluster of 64 mixed GPUs on first start."
        ),
    ] = True,
    demo_jobs: Annotated[
        bool,
        typer.Option(
            "--demo-jobs/--no-demo-jobs",
            help="Let jobs of several tenants arrive on it, after two whole weeks of history.",
        ),
    ] = True,
    allow_commands: Annotated[
        bool,
        typer.Option(
            "--allow-commands", help="Let jobs be commands, which run here as you do yourself."
        ),
    ] = False,
) -> None:
    """Start the whole service on this machine: API, pages, worker.

    Needs no database server and no broker.
    """
    from maat.cli.up import up

    raise typer.Exit(up(host, port, data_dir, demo_cluster, demo_jobs, allow_commands))


@app.command("version")
def version(as_json: AsJson = False) -> None:
    """Print the version."""
    show({"version": __version__}, as_json, __version__)


def run() -> None:
    """Run the command line.

    Bad input ends with its message and exit code 2, never with a traceback.
    """
    try:
        app()
    except InputError as bad:
        _end(str(bad), 2)
    except MaatError as failed:
        _end(str(failed), 1)
    except Exception as failed:
        _end_call(failed)
        raise


def _end_call(failed: Exception) -> None:
    """End with the message of a failed call of the service, if the error is one."""
    from maat.client import ApiError, Unreachable

    if isinstance(failed, ApiError):
        lines = [
            failed.summary,
            *(f"  {error.place}: {error.full_sentence}" for error in failed.errors),
            *([failed.next_step] if failed.next_step else []),
        ]
        _end("\n".join(lines), 2 if failed.status < 500 else 1)
    if isinstance(failed, Unreachable):
        _end(
            f"{failed}\nIs Maat running? Start it with `maat up`, or give its address with --url.",
            1,
        )


def _end(message: str, code: int) -> None:
    typer.echo(f"maat: {without_controls(message)}", err=True)
    sys.exit(code)
