"""The tables and figures of the four papers, and what makes them again.

Two studies of Maat's own are made of items too: `fidelity` and `comparison`.

An item (`items.py`) is data: what must be run, the published values, the figure, and a sentence on
why ours differ. One module a paper has its items; a further item is an entry there.
`reproducing.py` runs what items need, each run once, and `written.py` writes what comes out.
"""
