"""Figures for Prometheus: what this process counts, and what the database says."""
