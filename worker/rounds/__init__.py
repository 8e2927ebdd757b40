"""What a committed round leaves in the database."""
