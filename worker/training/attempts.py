"""What happens next to an attempt, and how it stands after that: the state machine, pure.

    ORDERED -> QUEUED -> STARTING -> RUNNING -> ENDED
        any of these -> STOPPING -> ENDED

An engine may be late, forget an attempt, or tell lies for a while. So an attempt ends, and lets go
of its GPUs, only when the engine says that it has ended, or has not known it for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from maat.vocabulary import AttemptState, Outcome, StopReason
from worker.engines.protocol import Phase, Seen

NO_AGENT = (
    "the script does not use maat.agent. Add the five lines of docs/adaptive-script.md to it, or "
    "submit it with --gpus, as a rigid job."
)
"""Why nothing is heard of an attempt that should report, and the remedy."""

CANNOT_SAVE = 74  # as maat.agent ends when it is asked to stop and has no room for a checkpoint


@dataclass(frozen=True, slots=True)
class Rules:
    """How long things may take, in seconds.

    Attributes:
        queue: From the order to the engine until the processes live.
        wake: The same, while its nodes boot, or nobody says whether they do.
        start: From then until the first report, of jobs that report.
        silent: Between reports.
        absent: For which the engine must not know an attempt before it counts as ended.
        kill: Between two orders to end by force.
        profile: From the first report of a profile, which has 20 s of steps, to its end.
        agent: Until a script that uses the agent has begun it, from when its processes live.
    """

    queue: float = 60.0
    wake: float = 1800.0
    start: float = 300.0
    silent: float = 300.0
    absent: float = 10.0
    kill: float = 10.0
    profile: float = 60.0
    agent: float = 60.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the rules need to know of an attempt; times are cluster seconds.

    Attributes:
        reports: Whether it must report: a job that adapts does.
        has_agent: Whether its script is known to use maat.agent. One that does not reports nothing.
        launched: Whether the engine may have been told to start it.
        stop_seconds: Time that it has to end by itself.
        stop_reason: Set once it was asked to end, at `stop_at`.
        stop_told: Whether the engine has heard of it. Its `stop_seconds` begin then.
        finished: All work is done, as its last report said; or its script, which has no agent,
            ended well though it was to be measured only.
        rank_count: Processes that it has.
        absent_since: Since when the engine has not known it.
        is_profile: It ends by itself, soon after `running_at`.
    """

    state: AttemptState
    reports: bool
    stop_seconds: float
    rank_count: int
    launched: bool = False
    queued_at: float | None = None
    alive_at: float | None = None
    last_report_at: float | None = None
    stop_reason: StopReason | None = None
    stop_at: float | None = None
    stop_told: bool = False
    killed_at: float | None = None
    finished: bool = False
    absent_since: float | None = None
    is_profile: bool = False
    running_at: float | None = None
    has_agent: bool = True


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class TakeGpus:
    """Hold its GPUs, if nobody holds them and no older attempt of the job lives: then QUEUED."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Tell the engine to start it. It may have been told before."""


@dataclass(frozen=True, slots=True)
class Mark:
    """It has got to this state."""

    state: AttemptState


@dataclass(frozen=True, slots=True)
class Miss:
    """The engine does not know it: from now on (True), or it does again (False)."""

    absent: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask it to end, for this reason; by force if `kill`."""

    reason: StopReason
    kill: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """It has ended: let go of its GPUs. `finished`: all work is done, though none is reported."""

    outcome: Outcome
    exits: dict[int, int] = field(default_factory=dict)
    reason: str = ""
    finished: bool = False


Move: TypeAlias = Wait | TakeGpus | Launch | Mark | Miss | Stop | End


def next_move(attempt: Attempt, seen: Seen | None, rules: Rules, now: float) -> Move:
    """Return the one thing to do next for this attempt.

    `seen`: what the engine says of it; None while it was not asked or does not answer.
    """
    if attempt.state is AttemptState.ENDED:
        return Wait()
    if attempt.state is AttemptState.ORDERED:
        return TakeGpus() if attempt.stop_reason is None else End(Outcome.NEVER_STARTED)
    if not attempt.launched:
        return Launch() if attempt.stop_reason is None else End(Outcome.NEVER_STARTED)
    if seen is not None and seen.phase is Phase.ENDED:
        return _end(attempt, seen)
    if seen is not None and seen.phase is Phase.ABSENT:
        return _absent(attempt, seen, rules, now)
    if attempt.absent_since is not None and seen is not None and seen.phase is not Phase.UNKNOWN:
        return Miss(False)
    if attempt.state is AttemptState.STOPPING:
        return _stopping(attempt, rules, now)
    runs = seen is not None and seen.phase is Phase.RUNNING
    if runs and attempt.state is AttemptState.QUEUED and attempt.stop_reason is None:
        return Mark(AttemptState.STARTING)  # it may have started long before this look
    overdue = _overdue(attempt, seen, rules, now)
    if overdue is not None:
        return Stop(overdue)
    if not runs:
        return Wait()
    heard_of = not attempt.reports or attempt.last_report_at is not None
    if attempt.state is AttemptState.STARTING and (heard_of or _is_mute(attempt, rules, now)):
        return Mark(AttemptState.RUNNING)
    return Wait()


def after(attempt: Attempt, move: Move, now: float) -> Attempt:
    """Return the attempt after this move.

    It is stored before the engine is told: a move that the engine has not heard of is made again.
    """
    match move:
        case TakeGpus():
            return replace(attempt, state=AttemptState.QUEUED, queued_at=now)
        case Launch():
            return replace(attempt, launched=True)
        case Mark(state=AttemptState.STARTING):
            return replace(attempt, state=AttemptState.STARTING, alive_at=now)
        case Mark(state):
            return replace(attempt, state=state, running_at=now)
        case Miss(absent):
            return replace(attempt, absent_since=now if absent else None)
        case Stop(reason, kill):
            return replace(
                attempt,
                state=AttemptState.STOPPING,
                stop_reason=reason,
                stop_at=now if attempt.stop_at is None else attempt.stop_at,
                killed_at=now if kill else attempt.killed_at,
            )
        case End():
            return replace(attempt, state=AttemptState.ENDED)
    return attempt


def heard(attempt: Attempt, move: Move, now: float) -> Attempt:
    """Return the attempt once the engine has carried this move out.

    An engine that was away hears of a stop late: until then the attempt has gone on with its work.
    """
    if not isinstance(move, Stop) or attempt.stop_told:
        return attempt
    return replace(attempt, stop_told=True, stop_at=now)


def _absent(attempt: Attempt, seen: Seen, rules: Rules, now: float) -> Move:
    """The engine does not know it: it was never told, or has forgotten, or is late."""
    if attempt.state is AttemptState.QUEUED:
        overdue = _overdue(attempt, seen, rules, now)
        return Launch() if overdue is None else Stop(overdue)
    if attempt.absent_since is None:
        return Miss(True)
    if now - attempt.absent_since < rules.absent:
        return Wait()
    if attempt.killed_at is None:
        return Stop(attempt.stop_reason or StopReason.SILENT, kill=True)
    if now - attempt.killed_at < rules.absent:
        return Wait()
    reason = attempt.stop_reason
    if attempt.alive_at is None and reason is StopReason.NOT_STARTED:
        return End(Outcome.REFUSED, {}, "The engine did not start it in time.")
    asked = reason not in (None, StopReason.SILENT, StopReason.NO_AGENT)
    words = seen.reason or "The engine no longer knows of it."
    return End(Outcome.STOPPED if asked else Outcome.LOST, {}, words)


def _stopping(attempt: Attempt, rules: Rules, now: float) -> Move:
    reason = attempt.stop_reason or StopReason.PREEMPTED
    if not attempt.stop_told:
        return Stop(reason)
    asked = now if attempt.stop_at is None else attempt.stop_at
    last = attempt.killed_at
    if last is None:
        return Stop(reason, kill=True) if now - asked > attempt.stop_seconds else Wait()
    return Stop(reason, kill=True) if now - last > rules.kill else Wait()


def _overdue(attempt: Attempt, seen: Seen | None, rules: Rules, now: float) -> StopReason | None:
    """Return why a live attempt must be asked to end, if it must."""
    if attempt.stop_reason is not None:
        return attempt.stop_reason
    running = attempt.running_at if attempt.is_profile else None
    if running is not None and now - running > rules.profile:
        return StopReason.PROFILED
    if attempt.state is AttemptState.QUEUED:
        wakes = seen is None or seen.phase is Phase.UNKNOWN or seen.wakes
        most = rules.wake if wakes else rules.queue
        since, reason = attempt.queued_at, StopReason.NOT_STARTED
    elif not attempt.reports:
        return None
    elif _is_mute(attempt, rules, now):
        return StopReason.NO_AGENT if attempt.is_profile else None
    elif attempt.last_report_at is None and attempt.running_at is not None:
        return None  # it ran without the agent, and may have begun it since
    elif attempt.last_report_at is None:
        since, most, reason = attempt.alive_at, rules.start, StopReason.SILENT
    else:
        since, most, reason = attempt.last_report_at, rules.silent, StopReason.SILENT
    return reason if since is not None and now - since > most else None


def _is_mute(attempt: Attempt, rules: Rules, now: float) -> bool:
    """Return whether its script had the time to begin the agent, and has not."""
    if attempt.has_agent or attempt.last_report_at is not None or attempt.alive_at is None:
        return False
    return now - attempt.alive_at > rules.agent


def _end(attempt: Attempt, seen: Seen) -> End:
    outcome, words = _outcome(attempt, seen), _words(attempt, seen)
    unheard = not attempt.has_agent and attempt.last_report_at is None
    did_all = attempt.is_profile and unheard and outcome is Outcome.SUCCEEDED
    if did_all:
        words = f"It ended well while it was to be measured, and is not run again: {NO_AGENT}"
    elif seen.full_folder and outcome is not Outcome.SUCCEEDED:
        words = f"{words} The disk of {seen.full_folder} was full: make room there.".lstrip()
    return End(outcome, dict(seen.exits), words, finished=did_all)


def _outcome(attempt: Attempt, seen: Seen) -> Outcome:
    """Return how an attempt ended.

    A script that was asked to stop may end with 0 though it has work left; only its last report
    tells that it had none. One that does not report hears it from the engine alone.
    """
    codes, reason = seen.exits.values(), attempt.stop_reason
    all_well = len(seen.exits) == attempt.rank_count and not any(codes)
    reports = attempt.reports and (attempt.has_agent or attempt.last_report_at is not None)
    is_unaware = not reports and attempt.state is not AttemptState.STOPPING
    if all_well and (reason is None or attempt.finished or is_unaware):
        return Outcome.SUCCEEDED
    if reason in (StopReason.SILENT, StopReason.NO_AGENT):
        return Outcome.FAILED if attempt.absent_since is None else Outcome.LOST
    if reason is StopReason.NOT_STARTED:
        return Outcome.REFUSED
    if reason is not None:
        return Outcome.STOPPED
    if seen.cancelled:
        return Outcome.CANCELLED
    return Outcome.LOST if seen.by_engine or not any(codes) else Outcome.FAILED


def _words(attempt: Attempt, seen: Seen) -> str:
    if attempt.stop_reason is StopReason.NO_AGENT:
        return f"Nothing could be measured: {NO_AGENT}"
    if attempt.stop_reason is StopReason.SILENT:
        return "It did not report any more." if attempt.absent_since is None else seen.reason
    if seen.reason:
        return seen.reason
    unsaved = [rank for rank, code in sorted(seen.exits.items()) if code == CANNOT_SAVE]
    if unsaved:
        return (
            f"Rank {unsaved[0]} could not write its checkpoint (exit code {CANNOT_SAVE}): "
            "the job goes on from an older one."
        )
    if seen.first_failed is not None and seen.first_failed in seen.exits:
        code = seen.exits[seen.first_failed]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"Rank {seen.first_failed} ended with {how}."
    return ""
