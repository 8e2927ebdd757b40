"""The REST service: FastAPI routes over services over repositories.

It decides no round: the worker does.
"""
