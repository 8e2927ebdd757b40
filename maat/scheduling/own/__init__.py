"""Policies from outside the package: a function or class of somebody else's (docs/own-policies.md).

policy.py      one as rounds know it; answers.py: what it returned, as a decision
loading.py     `module:Class` as an entry of the registry; code.py: a digest of its files
installed.py   those of installed distributions; listing.py: every own policy of this process
failures.py    what went wrong in one, in words that everybody may read
"""
