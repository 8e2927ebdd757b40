"""Many simulations: sweeps, comparisons, fairness, and the papers' experiments."""
