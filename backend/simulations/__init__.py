"""Simulations of the policy laboratory."""
