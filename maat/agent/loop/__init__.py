"""Reads the source of the script's loop: may the passes of a step be its batches?

`check` is the way in; `source` finds the loop, `reading` goes through its statements, `expressions`
and `calls` through what they are made of, and `effects` says what of it changes the training.
"""
