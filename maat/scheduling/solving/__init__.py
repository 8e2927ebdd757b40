"""Programmes and how they are solved. Knows arrays, not jobs: whoever states a programme says what its columns and rows mean."""
