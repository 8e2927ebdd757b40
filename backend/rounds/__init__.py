"""Committed rounds and what follows from them over time."""
