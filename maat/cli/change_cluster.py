"""`maat change-cluster`: policy, placer, name and pace of a live cluster, after a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.clusters import Interference, JobsPerGpu, number_or_name
from maat.cli.numbers import number_option
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.cli.stay_options import LeastStay, MostMoves
from maat.client.following import followed
from maat.library.durations import bounds_of
from maat.scheduling.errors import MaatError, ParameterError
from maat.vocabulary import LEAST_ROUND_SECONDS, MOST_ROUND_SECONDS

if TYPE_CHECKING:
    from maat.api.clusters import ClusterOut
    from maat.api.previews import JobFateOut, PreviewResultOut, RoundPreviewOut, RoundSideOut
    from maat.client import Client

_MOST_SHOWN = 20
_COUNTS = {
    "gpus_in_use": "GPUs in use",
    "jobs_with_gpus": "jobs with GPUs",
    "jobs_waiting": "jobs that wait",
    "starts": "start",
    "resumes": "resume",
    "stops": "stop",
    "resizes": "change count",
    "moves": "move",
    "restarts": "restarts",
}


class NoPreview(MaatError):
    """The preview failed, or was cancelled."""


def change_cluster(
    cluster: Annotated[str, typer.Argument(help="Its id or name.")],
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    policy: Annotated[str | None, typer.Option(help="Its new policy.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the policy. May be repeated."
        ),
    ] = None,
    placer: Annotated[str | None, typer.Option(help="Its new placer.")] = None,
    set_placer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the placer. May be repeated."),
    ] = None,
    round_seconds: Annotated[
        float | None,
        number_option(
            "--round-seconds",
            least=LEAST_ROUND_SECONDS,
            most=MOST_ROUND_SECONDS,
            help="Time between two rounds.",
        ),
    ] = None,
    jobs_per_gpu: JobsPerGpu = None,
    interference: Interference = None,
    least_stay_seconds: LeastStay = None,
    most_moves_per_hour: MostMoves = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the next round would do then.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change a cluster; with --dry-run, only say what the next round would do then."""
    with client_of(url) as maat:
        now = maat.cluster(cluster)
        is_set = set_ or set_placer
        policy_kept, placer_kept = _kept(now, policy, placer) if is_set else ({}, {})
        given: dict[str, Any] = {
            "name": name,
            "policy": policy,
            "policy_parameters": _parameters(set_, policy_kept),
            "placer": placer,
            "placer_parameters": _parameters(set_placer, placer_kept),
            "round_seconds": round_seconds,
            "jobs_per_gpu": jobs_per_gpu,
            "interference": number_or_name(interference),
        }
        given = {key: value for key, value in given.items() if value is not None}
        given |= bounds_of(least_stay_seconds, most_moves_per_hour)
        if not given:
            remedy = (
                "Give --policy, --placer, --set, --set-placer, --round-seconds, --jobs-per-gpu, "
                "--interference, --least-stay-seconds, --most-moves-per-hour or --name."
            )
            raise ParameterError("is missing", field="change", remedy=remedy)
        if dry_run:
            given.pop("name", None)
            found = awaited(maat, maat.preview_round(now["id"], given))
            show(found, as_json, "\n".join(preview_lines(found)))
            return
        changed = maat.change_cluster(now["id"], given, version=now["version"])
    pace = f"a round every {changed['round_seconds']:g} s"
    done = f"{changed['name']} has {changed['policy']} with {changed['placer']}, {pace}"
    done += ", two jobs per GPU" if changed["jobs_per_gpu"] > 1 else ""
    show(changed, as_json, "\n".join([done, *changed["notes"]]))


def _kept(
    now: ClusterOut, policy: str | None, placer: str | None
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the parameters that policy and placer keep: another one starts with its own."""
    from maat.scheduling.parts import Parts

    present = Parts(
        now["policy"], now["placer"], now["policy_parameters"], now["placer_parameters"]
    )
    after = present.changed(policy, placer)
    return after.policy_parameters, after.placer_parameters


def _parameters(
    given: Sequence[str] | None, kept: Mapping[str, object]
) -> dict[str, object] | None:
    """Return a part's parameters, those given beside those kept; None if they stay."""
    if not given:
        return None
    from maat.cli.policy_options import read_settings

    return {**kept, **read_settings(given)}


def awaited(maat: Client, preview: RoundPreviewOut) -> RoundPreviewOut:
    """Wait for a preview; on Ctrl+C, cancel it. Raises NoPreview if there is no result."""
    followed(maat, preview["operation_id"])
    found = maat.round_preview(preview["cluster_id"], preview["id"])
    if found["result"] is None:
        raise NoPreview(found["message"])
    return found


def preview_lines(preview: RoundPreviewOut) -> list[str]:
    """Return the two rounds side by side, and the jobs that they treat differently."""
    result = preview["result"]
    if result is None:
        return [preview["message"]]
    from maat.api.previews import not_considered_words, sharing_words

    sides = (result["as_it_stands"], result["with_change"])
    rows = [
        ["policy", *(f"{side['policy']} with {side['placer']}" for side in sides)],
        ["on a GPU", *map(sharing_words, sides)],
        *([words, *(str(_count(side, key)) for side in sides)] for key, words in _COUNTS.items()),
    ]
    columns = (f"round {result['round_number']}", "as it stands", "with the change")
    now = f"Now {result['gpus_in_use']} of {result['gpus_in_service']} GPUs are in use."
    unseen = not_considered_words(result)
    return [
        now,
        table_of(columns, rows),
        *([unseen] if unseen else []),
        *result["with_change"]["notes"],
        *_job_lines(result),
    ]


def _count(side: RoundSideOut, key: str) -> int:
    found: int = side[key]  # type: ignore[literal-required]
    return found


def _job_lines(result: PreviewResultOut) -> list[str]:
    differing = result["jobs_treated_differently"]
    if not differing:
        return ["Both rounds treat every job alike."]
    shown = [job for job in result["jobs"] if job["as_it_stands"] != job["with_change"]]
    lines = [
        f"  {job['job_id']}  {job['job_name']}  "
        f"{_fate(job['as_it_stands'])} -> {_fate(job['with_change'])}"
        for job in shown[:_MOST_SHOWN]
    ]
    count = "1 job is" if differing == 1 else f"{differing} jobs are"
    more = differing - len(lines)
    return [f"{count} treated differently:", *lines, *([f"  and {more} more"] if more else [])]


def _fate(fate: JobFateOut) -> str:
    if fate["gpu_type"] is None:
        return fate["fate"]
    return f"{fate['fate']} on {fate['gpu_count']} x {fate['gpu_type']}"
