"""Use and cost of live clusters: who held which GPUs for how long, and to what effect."""
