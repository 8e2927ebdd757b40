"""Figures: pure functions from what the API answered, and a colour scheme, to a Plotly figure. They fetch nothing."""
