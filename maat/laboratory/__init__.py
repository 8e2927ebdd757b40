"""Many simulations: sweeps, comparisons, figures, fairness, and the papers' experiments."""
