"""Makes tables and figures of the papers again, for the service."""
