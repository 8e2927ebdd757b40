"""Benchmarks: each prints a table of figures measured in that run.

None is a test, and no test measures time.
"""
