"""Programmes and how they are solved. Knows arrays, not jobs: the caller that states a programme says what its columns and rows mean."""
