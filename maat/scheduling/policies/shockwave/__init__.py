"""Shockwave (NSDI '23): plans a window of rounds, predicting how jobs adapt."""
