"""The Celery worker: live rounds, simulations, housekeeping.

It imports backend and maat; no other package imports it.
"""
