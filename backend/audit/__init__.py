"""What was changed, by whom: kept append-only, and read by those who may."""
