"""Jobs: submitting, listing, explaining, cancelling."""
