"""The conditions of a request in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frontend.components.conditions.values import Reservation
from frontend.components.names import isolated
from frontend.components.reservation_fields import held_for
from frontend.formatting import clock, count, duration, number, plural
from frontend.runs import StoredRequest
from maat.api.measurements import UsedOut
from maat.vocabulary import MEASURED

_BOUND = (("rigid", "rigid"), ("strong_scaling", "strong-scaling"))
_DRAWN = {"medians": ", each the median of a measured GPU", "rows": ", each a single measurement"}

_HISTORY = {
    "begun_before": "had begun before",
    "waiting_before": "had waited before",
    "submitted": "came in it",
    "cut_short": "of them were cancelled or failed",
    "as_recorded": "of them are commands",
    "without_work": "left out, since nothing is known of their work",
}


def describe(request: StoredRequest, measurements: Sequence[UsedOut] = ()) -> list[tuple[str, str]]:
    """Return the conditions of a request that differ from the usual ones, in words.

    Args:
        request: A simulation or a sweep as it was asked for.
        measurements: The measurements that it was asked for with.
    """
    named = {
        str(used["kind"]): used["name"] + (f", {used['gpu_type']}" if used["gpu_type"] else "")
        for used in measurements
    }
    return [
        *_about_jobs(request, named),
        *_about_gpus(request, named),
        *_about_nodes(request, named),
    ]


def trace_words(trace: StoredRequest) -> str:
    """A stored trace in words: its kind, then what else was asked of it.

    `CSV file of 135 bytes`, `philly: jobs 40, hours 4`; what is None is left out.
    """
    if trace["kind"] == "csv":
        size, name = trace.get("text_bytes"), trace.get("name")
        kind = "CSV file" if name is None else f"trace {isolated(str(name))}"
        return kind if size is None else f"{kind} of {size} bytes"
    if trace["kind"] == "cluster":
        return _history_words(trace)
    asked = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in trace.items()
        if name != "kind" and value is not None and (name, value) != ("xxl_share", 0)
    ]
    return ": ".join([str(trace["kind"]), *([", ".join(asked)] if asked else [])])


def _history_words(trace: StoredRequest) -> str:
    """`what a cluster did from 26 Nov 10:00 to ...: 3 jobs had begun before, ...`."""
    window = trace.get("window")
    if window is None:
        return "all jobs that a cluster has had"
    counts = ", ".join(
        f"{count(window[name])} {words}" for name, words in _HISTORY.items() if window.get(name)
    )
    told = f"what a cluster did from {clock(window['start'])} to {clock(window['end'])}"
    return f"{told}; jobs: {counts}" if counts else told


def _about_jobs(request: StoredRequest, named: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is known of jobs, how often they are considered, what they ask for and share."""
    lines = []
    if request.get("profiles"):
        lines.append(("Profiles", named.get("profiles", str(request["profiles"]))))
    if request.get("profiling"):
        lines.append(("Profiling", str(request["profiling"])))
    if rounds := _round_durations(request):
        lines.append(("Round duration", rounds))
    bound = [
        f"{number(request[f'{name}_share'])} {words}"
        for name, words in _BOUND
        if request.get(f"{name}_share")
    ]
    if bound:
        lines.append(("Share of jobs", ", ".join(bound)))
    if request.get("least_stay_seconds"):
        lines.append(("Least stay", duration(request["least_stay_seconds"])))
    if request.get("most_moves_per_hour"):
        lines.append(("Most moves in an hour", count(request["most_moves_per_hour"])))
    if request.get("tuned"):
        most = plural(request["tuned_gpus"], "GPU")
        lines.append(("Tuned jobs", f"{request['tuned']}, at most {most}"))
    if by_policy := tuning_of(request):
        rules = ", ".join(f"{rule} under {policy}" for policy, rule in by_policy.items())
        lines.append(("Tuned under single policies", rules))
    if request.get("measured_jobs"):
        lines.append(("Figures", f"of jobs {request['measured_jobs']} in order of submission"))
    if request.get("jobs_per_gpu", 1) > 1:
        lost = named.get("interference", request["interference"])
        words = f"up to {request['jobs_per_gpu']}, interference {lost}"
        lines.append(("Jobs per GPU", words))
    return lines


def tuning_of(request: StoredRequest) -> Mapping[str, str]:
    """Return the rule of tuning of each policy that has one of its own."""
    if "runs" in request:
        return {run["policy"]: run["tuned"] for run in request["runs"] if run.get("tuned")}
    return request.get("tuned_by_policy") or {}


def _round_durations(request: StoredRequest) -> str:
    """Return the duration of all policies' rounds, and those of single policies."""
    of_all = request.get("round_seconds")
    own = {
        str(run["policy"]): f"{run['policy']} {number(run['round_seconds'])} s"
        for run in request.get("runs", ())
        if run.get("round_seconds")
    }
    return ", ".join([*([f"{number(of_all)} s"] if of_all else []), *own.values()])


def _about_gpus(request: StoredRequest, named: Mapping[str, str]) -> list[tuple[str, str]]:
    """How unequal the GPUs of a type are."""
    if not request.get("variability"):
        return []
    drawn = _DRAWN.get(request.get("variability_draw") or "", "")
    measured = named.get("variability", request["variability"])
    return [("GPUs of one type", f"unequal as {measured} measured{drawn}")]


def _about_nodes(request: StoredRequest, named: Mapping[str, str]) -> list[tuple[str, str]]:
    """What nodes apart cost, how often nodes fail, and what is reserved on them."""
    lines = []
    if request.get("locality_penalty"):
        lines.append(("Slowdown across nodes", _slowdown(request["locality_penalty"], named)))
    if request.get("rack_penalty", 1) > 1:
        lines.append(("Further slowdown across racks", number(request["rack_penalty"])))
    if request.get("network_contention"):
        lost = f"{number(request['network_contention'])} of the speed"
        lines.append(("Network contention of distributed jobs", lost))
    if failures := request.get("failures"):
        often = number(failures["mtbf_hours"])
        words = f"each node about every {often} h, for {duration(failures['repair_seconds'])}"
        lines.append(("Failures", words))
    if request.get("reservations"):
        lines.append(("Reserved", "; ".join(reserved(one) for one in request["reservations"])))
    if quotas := request.get("quotas"):
        lines.append(("Quotas and weights", f"of {plural(len(quotas), 'tenant')}"))
    return lines


def _slowdown(given: float | str | Mapping[str, float], named: Mapping[str, str]) -> str:
    if given == MEASURED:
        return "placers know what the models' own step times show (measured)"
    if isinstance(given, str):
        return f"as {named.get('locality', given)} measured"
    if isinstance(given, Mapping):
        return ", ".join(f"{number(factor)} for {model}" for model, factor in given.items())
    return f"{number(given)} for every model"


def reserved(one: Reservation) -> str:
    """`4 × a100 for job bert-3, until 2 h`."""
    holder = f"tenant {one['tenant']}" if one.get("tenant") else f"job {one['job']}"
    when = held_for(one["start_seconds"], one["end_seconds"])
    return f"{one['gpu_count']} × {one['gpu_type']} for {holder}, {when}"
