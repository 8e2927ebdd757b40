"""A demo cluster with jobs of several tenants, and two whole weeks of history.

Arrivals follow the hours of the week. The settings turn it on.
"""
