"""Finish-time fairness of ended jobs, and shares of the tenants: deserved and actual."""
