"""The simulator: the conditions of a run, its jobs, and the engine that runs a scenario.

It knows what jobs truly do. A policy never sees this.
"""
