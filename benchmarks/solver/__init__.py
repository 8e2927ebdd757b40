"""Sia's programme, beside other solvers."""
