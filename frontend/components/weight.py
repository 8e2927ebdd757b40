"""The weight of a job: what its field says of a cluster, and what is wrong in it."""

from __future__ import annotations

from frontend.forms import wrong_number
from maat.api.clusters import ClusterOut
from maat.api.jobs import JobBody
from maat.vocabulary import LEAST_WEIGHT, MOST_WEIGHT


def weight_help(cluster: ClusterOut | None) -> str:
    """Return the help of the field; `cluster`: where the job runs, None if it is not known."""
    help_text = str(JobBody.model_fields["weight"].description)
    if cluster is None or cluster["weighs_jobs"]:
        return help_text
    return f"The policy of this cluster, {cluster['policy']}, ignores it. {help_text}"


def wrong_weight(value: object) -> str:
    """Return what is wrong with a weight, in a field that may not be empty."""
    if value in ("", None):
        return f"Give a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}."
    return wrong_number(JobBody, "weight", value)
