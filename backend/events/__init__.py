"""The stream of what changed."""
