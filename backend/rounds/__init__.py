"""Committed rounds and their timeline."""
