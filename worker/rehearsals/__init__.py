"""Rounds of a live cluster that are played and not applied."""
