"""Long work: its progress and its cancellation."""
