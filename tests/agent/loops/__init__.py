"""Loops of training scripts, one for each row of the table in docs/adaptive-script.md.

Each is run without the agent, and with it in one pass and in several passes a step.
"""

from loops import averages, batches, gradients, samples, schedules, steps
from loops.script import BATCH, Rows, Script, loss_of

ROWS: Rows = {
    **gradients.ROWS,
    **steps.ROWS,
    **schedules.ROWS,
    **averages.ROWS,
    **batches.ROWS,
    **samples.ROWS,
}

__all__ = ["BATCH", "ROWS", "Script", "loss_of"]
