"""What a round costs, and what quotas change."""
