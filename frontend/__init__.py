"""The pages of Maat: Dash on the service's own ASGI application.

Everything they show comes through the REST API.
"""
