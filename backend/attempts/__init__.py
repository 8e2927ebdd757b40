"""Attempts: the lives of a job's processes, and what their agents report."""
