"""Engines run gangs of processes on nodes; protocol.py says what each must keep to."""
