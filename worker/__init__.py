"""The Celery worker: live rounds, simulations, housekeeping.

It imports backend and maat; no other package imports it.
"""

from maat.garbage import collect_less_often

collect_less_often()  # before all else is imported: looks for garbage took a seventh of that
