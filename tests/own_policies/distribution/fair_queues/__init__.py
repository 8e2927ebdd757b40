"""Policies that are no part of Maat."""
