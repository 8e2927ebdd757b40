"""Maat: a scheduler for deep-learning training jobs on GPU clusters of mixed types.

`maat.scheduling` decides, `maat.simulation` plays it through, `maat.client` talks to a running service.
"""

__version__ = "0.1.0"
