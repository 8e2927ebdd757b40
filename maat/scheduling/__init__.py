"""The core: it decides, and has no side effects.

It needs numpy, scipy, threadpoolctl and the standard library, and imports no other part of Maat.
"""
