"""Uploaded measurements: how GPUs differ, and the interference of jobs on a GPU."""
