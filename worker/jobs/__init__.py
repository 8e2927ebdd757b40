"""What rounds and time change about single jobs."""
