"""A report as PDF: vector figures, embedded fonts, A4 or Letter, readable in black and white."""
