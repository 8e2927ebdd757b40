"""Reports by schedule: made once, and delivered."""
