"""The assignment programme: each job gets at most one pair, and limits bound the places.

docs/solver.md explains the method. `problem` is the data, `solver` the entry.
"""
