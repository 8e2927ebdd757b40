"""Maat on public traces, beside published figures."""
