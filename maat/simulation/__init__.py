"""The simulator: conditions, scenarios, jobs, and the engine that runs them.

It knows what jobs truly do. A policy never sees this.
"""
