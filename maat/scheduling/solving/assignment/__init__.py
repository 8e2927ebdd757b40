"""The assignment programme: at most one pair per job, within limits.

docs/solver.md explains the method. `problem` is the data, `solver` the entry.
"""
