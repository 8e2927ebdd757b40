"""Models: the catalog, measured profiles and tables, and the true step times."""
