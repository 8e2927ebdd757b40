"""What rho is here: the formula by which it is worked out, its version, and its baseline."""

from __future__ import annotations

from maat.vocabulary import FairnessRule

RULE = FairnessRule.MEAN_OF_RATIOS
VERSION = 1
"""Grows when the same job would get another rho. Rows keep theirs until asked for again."""
TEXT = "rho = sum over GPU types g of N_g / N x JCT / JCT_g"
BASELINE = (
    "JCT_g: the job alone on its equal share of the cluster, N / n_avg GPUs of type g, by the "
    "throughput and efficiency that were measured of it. n_avg is the mean number of active jobs "
    "over its life. Alone it starts on the fewest GPUs, at most doubles each minute and pays for "
    "its restarts; a rigid job runs on the GPUs that it asked for, on a smaller share "
    "proportionally longer. Types on which it cannot run are left out. Time for which a job was "
    "paused counts neither in its JCT nor among the active jobs. Sia section 5.5, eq. 6."
)
