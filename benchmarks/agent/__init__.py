"""What the agent costs a training script, and whether what it measures is right."""
