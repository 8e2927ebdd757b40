"""Plays simulations and sweeps."""
