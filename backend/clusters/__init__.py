"""Clusters and their nodes."""
