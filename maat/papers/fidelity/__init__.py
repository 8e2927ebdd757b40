"""How near Maat comes to Sia's published simulator, and what each rule does to its figures.

docs/fidelity.md says why they differ. Table 3 of the paper itself is `maat reproduce sia table-3`.
"""

from __future__ import annotations

from maat.papers.fidelity import fits, rules, simulator
from maat.papers.items import Paper

FIDELITY = Paper(
    "fidelity",
    "Fidelity: Maat beside Sia's published simulator, and rule by rule",
    (*simulator.ITEMS, *rules.ITEMS, *fits.ITEMS),
)
