"""Forecasts: when jobs start and end, from playing the present state of a cluster.

Pure: no database and no clock. The worker reads the state, and keeps what comes out.
"""
