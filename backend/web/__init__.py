"""What every request passes through: problems, identity, limits, documentation.

Knows no noun.
"""
