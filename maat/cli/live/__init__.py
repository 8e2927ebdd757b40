"""What a terminal shows while it changes: drawn again when the service tells of a change."""
