"""What reports have made Maat believe: who reported it, and how it is reset."""
