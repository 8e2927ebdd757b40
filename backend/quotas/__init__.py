"""Quotas: how many GPUs of a type each tenant is guaranteed, and may hold at most."""
