"""What a model is: the catalog, measured profiles and tables, and the true step times they follow."""
