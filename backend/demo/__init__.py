"""A demo cluster with jobs of several tenants, and a day of history.

Arrivals follow a daily rhythm. The settings turn it on.
"""
