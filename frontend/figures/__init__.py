"""Figures: pure functions from an answer of the API and a colour scheme to a Plotly figure."""
