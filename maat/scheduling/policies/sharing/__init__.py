"""Policies that let two jobs share GPUs: SJF-FFS and SJF-BSBF."""
