"""Imports: other systems' jobs as a trace, and their nodes as a cluster. Stores nothing."""
