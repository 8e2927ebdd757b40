"""Which jobs hold which GPUs of a cluster, and what follows for its nodes."""
