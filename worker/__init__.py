"""The Celery worker: live rounds, simulations, housekeeping. Imports backend and maat; nothing imports it."""
