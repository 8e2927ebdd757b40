"""Measurements that people upload: how unequal GPUs are, and what jobs on one GPU lose."""
