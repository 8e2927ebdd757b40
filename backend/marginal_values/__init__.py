"""What one more GPU of each type would have been worth, day by day: roll-ups of rounds' prices."""
