"""The catalog of deep-learning models and the live goodput preview."""
