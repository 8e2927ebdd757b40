"""A step of a live cluster: who makes it, what it starts from, what stays in memory."""
