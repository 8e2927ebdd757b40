"""Tenants, users, tokens, and what each role may do."""
