"""What `import maat` offers: simulate, compare, sweep, their tables, and own policies.

For notebooks and scripts; the command line is written with it. `maat/__init__.py` names it all.
"""
