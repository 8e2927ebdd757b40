"""Figures: functions from data to a plotly Figure, for pages, notebooks and reports.

They know numbers, texts and colours, no job and no policy. Needs plotly, the extra `maat[plot]`.
"""
