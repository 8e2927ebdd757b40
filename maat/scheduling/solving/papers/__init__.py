"""The programmes of four papers, stated in CVXPY as each paper writes them.

One module per paper: variables, objective and constraints, with the equation beside each line; the
rows that Sia and Themis share are in choice.py.
They take arrays and return the answer unchecked; the solvers of Maat's own engines check it
(`assignment/solver.py`, `linear_solver.py`, `mixed_solver.py`). These modules import CVXPY, so they
are imported where they are used.
"""
