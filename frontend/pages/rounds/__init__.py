"""Rounds: what each decided, what a GPU of each type was worth, and the goodput matrix."""

from frontend.pages.rounds.page import register

__all__ = ["register"]
