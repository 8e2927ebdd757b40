"""Messages to other services: which addresses are allowed, and how a message is signed."""
