"""Imports what a service and its worker need, but for what reads the settings when imported."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import worker

OF_SETTINGS = ("worker.app", "worker.tasks")

for name in ("uvicorn.protocols.http.auto", "uvicorn.loops.auto", "frontend.app"):
    import_module(name)
for name in ("celery.bin.celery", "celery.apps.worker", "celery.concurrency.solo"):
    import_module(name)
for found in pkgutil.walk_packages(worker.__path__, "worker."):
    if found.name not in OF_SETTINGS:
        import_module(found.name)
