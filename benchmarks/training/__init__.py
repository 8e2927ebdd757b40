"""What running commands costs."""
