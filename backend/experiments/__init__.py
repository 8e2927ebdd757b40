"""Experiments of the policy laboratory: auto-scaling and hyper-parameter search."""
