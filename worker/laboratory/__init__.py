"""Shares the workers of the laboratory among tenants."""
