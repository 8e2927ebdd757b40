"""What policies and placers there are."""
