"""Forecasts: when jobs start and end, what changes would do, and what promises were worth."""
