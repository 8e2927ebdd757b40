"""Copies of the whole database in one file: made, checked, restored."""
