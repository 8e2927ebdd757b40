"""Runs Slurm's commands: each has a time limit, and a bare environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from maat.launch.rank import inherited
from worker.engines.protocol import Refused, Unreachable

TIMEOUT_SECONDS = 15.0
"""A command waits 9 s for a controller that is away, then gives up by itself."""

_AWAY = (
    "unable to contact",
    "connection refused",
    "connection timed out",
    "socket timed out",
    "zero bytes were transmitted",
    "communication connection failure",
    "unexpected message",
    "controller not responding",
    "temporarily unable",
    "try again later",
    "protocol authentication error",
    "munge",
)
_NOT_HERE = "The worker has no command {}: install Slurm's client commands."
_NO_OPTION = "unrecognized option"
_without_json: set[str] = set()  # where scontrol is one of before 23.02
_GONE = ("invalid job id", "already completing or completed", "no jobs", "job has already")


class SlurmCommands:
    """Slurm as its commands show it. Everything raises Unreachable while it does not answer.

    `conf`: the file to use instead of the system's slurm.conf.
    """

    def __init__(self, conf: str | None = None) -> None:
        self._environment = inherited(os.environ)
        if conf is not None:
            self._environment["SLURM_CONF"] = conf
        elif "SLURM_CONF" in os.environ:
            self._environment["SLURM_CONF"] = os.environ["SLURM_CONF"]

    @property
    def folder(self) -> str:
        """Where the commands are."""
        found = shutil.which("sbatch", path=self._environment.get("PATH"))
        if found is None:
            raise Unreachable(_NOT_HERE.format("sbatch"))
        return os.path.dirname(found)

    def nodes(self) -> str:
        """Return the nodes as JSON, each by itself.

        Since 23.02 scontrol writes it, and sinfo groups of nodes; before, sinfo wrote the nodes.
        """
        scontrol = shutil.which("scontrol", path=self._environment.get("PATH")) or ""
        if scontrol not in _without_json:
            done = self._run(["scontrol", "show", "node", "--json"])
            if done.returncode == 0:
                return done.stdout
            if _NO_OPTION not in done.stderr:
                raise Unreachable(_last_words(done))
            _without_json.add(scontrol)
        return self._output(["sinfo", "--json"])

    def squeue(self) -> str:
        """Return the jobs that Slurm has in memory, ended ones too."""
        return self._output(["squeue", "--json", "--states=all"])

    def sbatch(self, arguments: Sequence[str], script: str) -> int:
        """Submit a job; return its id. Raises Refused.

        It is given all of an environment in which there is nothing but SLURM_CONF. With
        --export=NIL or NONE Slurm would have each node run the user's login shell first.
        """
        only = {"SLURM_CONF": conf} if (conf := self._environment.get("SLURM_CONF")) else {}
        done = self._run([self.folder + "/sbatch", "--export=ALL", *arguments], script, only)
        if done.returncode != 0:
            why = _last_words(done)
            raise Unreachable(why) if _is_away(done) else Refused(f"Slurm refused it: {why}")
        return int(done.stdout.strip().splitlines()[-1].partition(";")[0])

    def cancel_pending(self, name: str) -> None:
        """Cancel the jobs of this name that have not begun."""
        self._scancel(["--state=PENDING", f"--name={name}"])

    def terminate(self, name: str) -> None:
        """Send TERM to the steps of the jobs of this name, and not to their scripts.

        Neither --full nor --batch: Slurm would kill the steps once the script has ended.
        """
        self._scancel(["--signal=TERM", "--state=RUNNING", f"--name={name}"])

    def cancel(self, name: str) -> None:
        """End the jobs of this name: TERM, and KILL after Slurm's KillWait."""
        self._scancel([f"--name={name}"])

    def _scancel(self, arguments: Sequence[str]) -> None:
        done = self._run(["scancel", *arguments])
        gone = any(each in done.stderr.lower() for each in _GONE)
        if done.returncode != 0 and not gone:
            raise Unreachable(_last_words(done))

    def _output(self, command: Sequence[str]) -> str:
        done = self._run(command)
        if done.returncode != 0:
            raise Unreachable(_last_words(done))
        return done.stdout

    def _run(
        self,
        command: Sequence[str],
        text: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                list(command),
                env=self._environment if environment is None else environment,
                cwd="/",
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Unreachable(_NOT_HERE.format(command[0])) from None
        except OSError as error:
            raise Unreachable(f"{command[0]} cannot be run: {error.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise Unreachable(f"{command[0]} took more than {TIMEOUT_SECONDS:.0f} s.") from None


def _is_away(done: subprocess.CompletedProcess[str]) -> bool:
    return any(each in done.stderr.lower() for each in _AWAY)


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    name = os.path.basename(done.args[0])
    return f"{name}: {lines[-1].removeprefix(f'{name}: error: ')}"
