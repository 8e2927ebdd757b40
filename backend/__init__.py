"""The REST service: FastAPI routes over services over repositories. Decides no round: the worker does."""
