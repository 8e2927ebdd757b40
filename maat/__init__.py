"""Maat: a scheduler for deep-learning training jobs on GPU clusters of mixed types.

`maat.scheduling` decides, `maat.simulation` simulates one run, `maat.laboratory` many;
`maat.client` talks to a running service.
"""

__version__ = "0.1.0"
