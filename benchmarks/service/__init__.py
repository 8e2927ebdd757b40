"""The service under load, over long histories, and its pages."""
