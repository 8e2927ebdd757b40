"""Answers to "when" and "what if", and whether they come true."""
