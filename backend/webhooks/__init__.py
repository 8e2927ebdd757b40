"""Webhooks: what they are told of, which addresses are allowed, and how a message is signed.

The worker sends the messages.
"""
