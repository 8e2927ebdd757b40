"""What jobs run: commands, and the secrets that they are given."""
