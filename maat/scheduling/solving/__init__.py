"""Programmes and their solvers. They know arrays, not jobs.

The caller that states a programme knows what its columns and rows mean.
"""
