"""Sensitivity sweeps of the policy laboratory."""
