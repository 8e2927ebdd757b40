"""The policies and placers to choose from."""
