"""Runs jobs that are commands: attempts.py has the rules, reconcile.py carries them out."""
