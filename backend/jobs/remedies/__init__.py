"""What could be changed so that the next round starts a waiting job.

stage.py       the present cluster, on which a round is tried
wishes.py      what to try, the smallest change first
finding.py     tries it, and offers what works
words.py       says it
permitting.py  who may do it
"""

from backend.jobs.remedies.finding import RemedyFinder
from backend.jobs.remedies.stage import DrainedNode, Rehearsal, Room, Stage, Start, Trial

__all__ = ["DrainedNode", "Rehearsal", "RemedyFinder", "Room", "Stage", "Start", "Trial"]
